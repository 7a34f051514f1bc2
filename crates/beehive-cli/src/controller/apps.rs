//! The apps that the controller can run: their names, dependencies and order.

use super::Failure;
use crate::maps::{self, AppMaps};
use beehive_core::{Builder, Handlers, nearest_name};
use beehive_nom::apps::{Discovery, Firewall, Forwarding, Hosts, Hub, LearningSwitch, LoopGuard, Topology};
use std::any::TypeId;

/// An app that the controller can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AppChoice {
    Hub,
    LearningSwitch,
    Discovery,
    Firewall,
    Hosts,
    Forwarding,
    Custom(CustomApp),
}

/// An app added with [`Controller::app`](super::Controller::app).
#[derive(Clone, Copy, Debug)]
pub(super) struct CustomApp {
    name: &'static str,
    register: fn(Builder) -> Builder,
    maps: fn() -> AppMaps,
}

impl PartialEq for CustomApp {
    fn eq(&self, other: &CustomApp) -> bool {
        self.name == other.name
    }
}
impl Eq for CustomApp {}

/// The built-in apps by name.
pub(super) const APPS: [(&str, AppChoice); 6] = [
    ("learning-switch", AppChoice::LearningSwitch),
    ("hub", AppChoice::Hub),
    ("discovery", AppChoice::Discovery),
    ("firewall", AppChoice::Firewall),
    ("hosts", AppChoice::Hosts),
    ("forwarding", AppChoice::Forwarding),
];

/// Name of the settings table of the loop guard, which runs together with discovery.
const LOOP_GUARD: &str = "loop-guard";
/// Length of a generated secret, in bytes.
const SECRET_BYTES: usize = 32;

/// Returns the names of all settings tables, including those of `custom` apps.
pub(super) fn tables(custom: &[AppChoice]) -> Vec<&'static str> {
    let names = custom.iter().map(|app| app.name()).chain(APPS.map(|(name, _)| name));
    names.chain([LOOP_GUARD]).collect()
}

impl AppChoice {
    /// Looks up an app by name, first among the `custom` apps, then among the built-in ones.
    pub(super) fn named(name: &str, custom: &[AppChoice]) -> Result<AppChoice, Failure> {
        let all: Vec<_> = custom.iter().map(|app| (app.name(), *app)).chain(APPS).collect();
        let names: Vec<_> = all.iter().map(|(known, _)| *known).collect();
        if name.is_empty() {
            return Err(format!(
                "an app name is empty in --app, BEEHIVE_APP or `apps` (expected {})",
                names.join(", ")
            )
            .into());
        }

        let found = all.iter().find(|(known, _)| *known == name);
        found.map(|(_, app)| *app).ok_or_else(|| match nearest_name(name, &names) {
            Some(near) => format!("unknown app `{name}`; did you mean `{near}`?").into(),
            None => format!("unknown app `{name}` (expected {})", names.join(", ")).into(),
        })
    }

    /// Returns the choice for the type `A`: a built-in app, together with the apps it needs, or a custom app.
    pub(super) fn of<A: Handlers>() -> AppChoice {
        let types = [
            (TypeId::of::<Hub>(), AppChoice::Hub),
            (TypeId::of::<LearningSwitch>(), AppChoice::LearningSwitch),
            (TypeId::of::<Discovery>(), AppChoice::Discovery),
            (TypeId::of::<Firewall>(), AppChoice::Firewall),
            (TypeId::of::<Hosts>(), AppChoice::Hosts),
            (TypeId::of::<Forwarding>(), AppChoice::Forwarding),
        ];
        let known = types.iter().find(|(known, _)| *known == TypeId::of::<A>());
        let custom = AppChoice::Custom(CustomApp {
            name: A::NAME,
            register: |hive| hive.app::<A>(),
            maps: maps::maps_of::<A>,
        });
        known.map_or(custom, |(_, app)| *app)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            AppChoice::Custom(custom) => custom.name,
            _ => APPS.iter().find(|(_, app)| *app == self).map_or("", |(name, _)| name),
        }
    }

    /// Returns the maps of a custom app.
    pub(super) fn custom_maps(self) -> Option<AppMaps> {
        match self {
            AppChoice::Custom(custom) => Some((custom.maps)()),
            _ => None,
        }
    }

    /// Returns whether the settings table `name` belongs to this app.
    pub(super) fn has_settings(self, name: &str) -> bool {
        self.name() == name || (self == AppChoice::Discovery && name == LOOP_GUARD)
    }

    pub(super) fn register(self, hive: Builder) -> Builder {
        match self {
            AppChoice::Hub => hive.app::<Hub>(),
            AppChoice::LearningSwitch => hive.app::<LearningSwitch>(),
            AppChoice::Discovery => hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>(),
            AppChoice::Firewall => hive.app::<Firewall>(),
            AppChoice::Hosts => hive.app::<Hosts>(),
            AppChoice::Forwarding => hive.app::<Forwarding>(),
            AppChoice::Custom(custom) => (custom.register)(hive),
        }
    }
}

/// Returns whether the app forwards packets.
fn is_forwarder(app: &AppChoice) -> bool {
    matches!(app, AppChoice::Hub | AppChoice::LearningSwitch | AppChoice::Forwarding)
}

/// Returns warnings about configurations that are valid but probably unintended. Each warning names a remedy.
pub(super) fn warnings(apps: &[AppChoice], settings: &toml::Table) -> impl Iterator<Item = String> {
    // assumes that a custom app forwards packets
    let somebody = apps.iter().any(|app| is_forwarder(app) || matches!(app, AppChoice::Custom(_)));
    let nobody = (!somebody).then(|| {
        let names: Vec<_> = apps.iter().map(|app| app.name()).chain(["learning-switch"]).collect();
        format!("no app forwards packets; add one at the end: --app {}", names.join(","))
    });

    let firewall = settings.get(AppChoice::Firewall.name()).and_then(toml::Value::as_table);
    let has_rules =
        firewall.is_some_and(|table| table.contains_key("rules") || table.contains_key("default"));
    let closed = (apps.contains(&AppChoice::Firewall) && !has_rules).then(|| {
        "the firewall has no rules and denies everything; add [[apps.firewall.rules]] to a configuration file (--config)"
            .to_string()
    });

    nobody.into_iter().chain(closed)
}

/// Checks the dependencies and the order of the apps.
///
/// # Errors
///
/// Returns an error if the apps cannot work in this order. The text contains a command line that works.
pub(super) fn check(apps: &[AppChoice]) -> Result<(), Failure> {
    let place = |app| apps.iter().position(|a| *a == app);
    if place(AppChoice::Discovery).is_some_and(|place| place != 0) {
        return Err("discovery must be the first app; start with --app discovery,..".into());
    }

    let all = [AppChoice::Discovery, AppChoice::Hosts].map(place);
    if place(AppChoice::Forwarding).is_some() && all.contains(&None) {
        return Err(
            "forwarding needs discovery and hosts; start with --app discovery,hosts,forwarding".into()
        );
    }

    if let (Some(firewall), Some(forwarder)) =
        (place(AppChoice::Firewall), apps.iter().position(is_forwarder))
        && forwarder < firewall
    {
        return Err(
            "the firewall must come before the app that forwards packets; start with --app firewall,learning-switch"
                .into(),
        );
    }

    Ok(())
}

/// Fills in the settings that depend on the choice of apps, unless the file sets them: a secret for discovery, and
/// whether the loop guard lets forwarded packets pass through blocked ports. A reload keeps the secret of `before`,
/// the settings in force.
pub(super) fn fill_defaults(
    settings: &mut toml::Table,
    apps: &[AppChoice],
    before: Option<&toml::Table>,
) -> Result<(), Failure> {
    let discovery = AppChoice::Discovery.name();
    let kept = before.and_then(|before| before.get(discovery)?.get("secret"));
    if let Some(secret) = kept.filter(|_| apps.contains(&AppChoice::Discovery)) {
        // with a different secret, discovery would reject its own probes and lose all links
        set_default(settings, discovery, "secret", secret.clone())
    } else if apps.contains(&AppChoice::Discovery) {
        let mut secret = [0u8; SECRET_BYTES];
        let given = rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty());
        if given.map_err(|error| format!("cannot generate a secret: {error}"))? < SECRET_BYTES {
            return Err("cannot generate a secret: too few random bytes".into());
        }
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        set_default(settings, discovery, "secret", secret.into());
    }

    if apps.contains(&AppChoice::Forwarding) {
        set_default(settings, LOOP_GUARD, "paths_on_blocked", true.into());
    }

    Ok(())
}

/// Checks that the file sets what all hives of a cluster must share, and what a controller alone would make up.
#[cfg(feature = "cluster")]
pub(super) fn check_shared_settings(settings: &toml::Table, apps: &[AppChoice]) -> Result<(), Failure> {
    let discovery = AppChoice::Discovery.name();
    let has_secret = settings.get(discovery).is_some_and(|table| table.get("secret").is_some());
    match apps.contains(&AppChoice::Discovery) && !has_secret {
        true => Err("discovery needs the same secret on all hives of a cluster: set `secret` in [apps.discovery] of the \
             configuration file (--config); `openssl rand -hex 32` generates one"
            .into()),
        false => Ok(()),
    }
}

/// Sets a key unless the file has set it.
fn set_default(settings: &mut toml::Table, app: &str, key: &str, value: toml::Value) {
    let table = settings.entry(app).or_insert_with(|| toml::Table::new().into());
    // if the value is not a table, the app refuses it when parsing its settings
    if let toml::Value::Table(table) = table {
        table.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::AppChoice::{Discovery, Firewall, Forwarding, Hosts, LearningSwitch};
    use super::*;

    #[test]
    fn impossible_orders_are_refused() {
        assert!(check(&[Discovery, Hosts, Firewall, Forwarding]).is_ok());
        assert!(check(&[Firewall, LearningSwitch]).is_ok() && check(&[Discovery, LearningSwitch]).is_ok());
        let wrong: [&[AppChoice]; 4] = [
            &[LearningSwitch, Discovery],
            &[Forwarding],
            &[Discovery, Forwarding],
            &[LearningSwitch, Firewall],
        ];

        for apps in wrong {
            assert!(check(apps).unwrap_err().to_string().contains("--app"), "{apps:?}");
        }
    }

    #[test]
    fn probable_mistakes_cause_warnings() {
        let said = |apps: &[AppChoice], settings: &str| {
            let settings = settings.parse().unwrap();
            warnings(apps, &settings).collect::<Vec<_>>().join("\n")
        };

        assert!(said(&[Discovery, Hosts], "").contains("--app discovery,hosts,learning-switch"));
        assert!(said(&[Firewall, LearningSwitch], "").contains("denies everything"));
        for settings in ["[firewall]\ndefault = \"allow\"", "[firewall]\nrules = []"] {
            assert_eq!(said(&[Firewall, LearningSwitch], settings), "", "{settings}");
        }
        assert_eq!(said(&[Discovery, Hosts, Forwarding], ""), "");

        assert_eq!(said(&[AppChoice::of::<beehive_nom::apps::NodeController>()], ""), "");
    }

    #[test]
    fn every_app_of_the_controller_is_known_by_its_type() {
        let types = [
            AppChoice::of::<beehive_nom::apps::LearningSwitch>(),
            AppChoice::of::<beehive_nom::apps::Hub>(),
            AppChoice::of::<beehive_nom::apps::Discovery>(),
            AppChoice::of::<beehive_nom::apps::Firewall>(),
            AppChoice::of::<beehive_nom::apps::Hosts>(),
            AppChoice::of::<beehive_nom::apps::Forwarding>(),
        ];
        assert_eq!(types, APPS.map(|(_, app)| app));
        let custom = AppChoice::of::<beehive_nom::apps::NodeController>();
        assert_eq!(custom.name(), "node-controller");
        assert_eq!(AppChoice::named("node-controller", &[custom]).ok(), Some(custom));
        let nothing = AppChoice::named("", &[]).unwrap_err().to_string();
        assert!(nothing.contains("BEEHIVE_APP") && nothing.contains("learning-switch"), "{nothing}");

        assert!(
            AppChoice::named("node-controller", &[]).is_err() && tables(&[custom]).contains(&custom.name())
        );
    }

    #[test]
    fn generated_secrets_differ_and_do_not_replace_configured_ones() {
        let made = || {
            let mut settings = toml::Table::new();
            fill_defaults(&mut settings, &[Discovery], None).unwrap();
            settings["discovery"]["secret"].as_str().unwrap().to_string()
        };

        assert!(made().len() == 64 && made() != made());
        let mut settings: toml::Table = "[discovery]\nsecret = \"mine\"\n".parse().unwrap();
        let before = settings.clone();
        fill_defaults(&mut settings, &[Discovery, Hosts, Forwarding], None).unwrap();
        let mut again = toml::Table::new();
        fill_defaults(&mut again, &[Discovery], Some(&before)).unwrap();
        assert_eq!(again["discovery"]["secret"].as_str(), Some("mine"));
        assert_eq!(settings["discovery"]["secret"].as_str(), Some("mine"));

        assert_eq!(settings["loop-guard"]["paths_on_blocked"].as_bool(), Some(true));
    }
}
