//! One handler for each form, so that even a check of few bodies covers all forms.

use super::class_forms::forms;
use super::classes::Class;
use super::forms::{self, *};
use super::helpers::with_helpers;
use super::{Bodies, Body};

impl Bodies {
    /// Returns one handler for each form, whose keys depend on the value that the form computes or changes.
    pub(crate) fn of_each_form(&mut self) -> Vec<Body> {
        let mut bodies: Vec<(Class, &'static str, String)> = vec![];
        let key = |of: Of, name: &str| {
            format!("let key = {}; self.d.put(key, 1);", forms::summary(of).replace("{v}", name))
        };
        let fresh = |this: &mut Self, of: Of, name: &str| {
            let (text, _) = this.value(of, true, 0);
            format!("let mut {name} = {text}; ")
        };

        for (of, form) in VALUES {
            bodies.push((Class::Ordinary, form, format!("let v = {form}; {}", key(*of, "v"))));
        }
        // an expression that only reads a local does not make it unknown, even under a condition on state
        for (_, form) in VALUES {
            let (mut declared, mut read, mut keys) = (String::new(), form.to_string(), String::new());
            for of in ALL.iter().filter(|of| form.contains(of.placeholder())) {
                let name = format!("{}9", of.prefix());
                declared += &fresh(self, *of, &name);
                read = read.replace(of.placeholder(), &name);
                keys += &key(*of, &name);
            }
            bodies.push((
                Class::Ordinary,
                form,
                format!("{declared}if self.e.contains(&m.a) {{ let _ = {read}; }} {keys}"),
            ));
        }
        for (of, form) in CHANGES {
            let (v, w) = (fresh(self, *of, "v"), fresh(self, *of, "w"));
            let form_here = form.replace("{v}", "v").replace("{w}", "w");
            bodies.push((
                Class::Ordinary,
                form,
                format!("{v}{w}{form_here} {}{}", key(*of, "v"), key(*of, "w")),
            ));
        }
        for view in VIEWS {
            for of in ALL {
                let (v, w) = (fresh(self, *of, "v"), fresh(self, *of, "w"));
                let change = self.form(CHANGES, *of);
                if change.contains("{w}") {
                    continue;
                }
                let text = view.replace("{C}", &change.replace("{v}", "(*r)")).replace("{T}", of.written());
                let text = text.replace("{v}", "v").replace("{w}", "w");
                bodies.push((
                    Class::HiddenChanges,
                    view,
                    format!("{v}{w}{text} {}{}", key(*of, "v"), key(*of, "w")),
                ));
            }
        }
        for (of, form) in DECLARED_BY_CHANGE.iter().chain(LEAVES) {
            bodies.push((Class::Ordinary, form, format!("{} {}", form.replace("{v}", "v"), key(*of, "v"))));
        }
        for (head, of) in BINDINGS {
            bodies.push((
                Class::Ordinary,
                head,
                format!("{} {{ {} }}", head.replace("{b}", "v"), key(*of, "v")),
            ));
        }
        for (head, arms) in MATCHES {
            let arms: String = arms
                .iter()
                .map(|(pattern, of)| match of {
                    Some(of) => format!("{} => {{ {} }} ", pattern.replace("{b}", "v"), key(*of, "v")),
                    None => format!("{pattern} => {{ self.e.put(m.a, 1); }} "),
                })
                .collect();
            let rest = if head.starts_with("match {l}") { "_ => {}" } else { "" };
            bodies.push((Class::Ordinary, head, format!("{head} {{ {arms}{rest} }}")));
        }
        for form in MOVES {
            let text = form.replace("{v}", "v").replace("{T}", Of::List.written());
            bodies.push((Class::Ordinary, form, format!("let v = m.items.clone(); {text}")));
        }
        for form in CONDITIONS {
            bodies.push((
                Class::Ordinary,
                form,
                format!("if {form} {{ self.d.put(m.a, 1); }} else {{ self.e.put(m.a, 1); }}"),
            ));
        }

        let mut written = self.of_each_class_form();
        for (class, form, text) in bodies {
            let number = written.len() + 1;
            let text = with_helpers(number, &self.filled(&text, true, 0).0);
            written.push(Body { text, class, forms: vec![form], derivable: true, mistaken: None });
        }
        for form in UNDERIVABLE {
            let text = with_helpers(written.len() + 1, form);
            let class = Class::HiddenChanges;
            written.push(Body { text, class, forms: vec![form], derivable: false, mistaken: None });
        }
        written
    }

    /// Returns a handler for each form of a class, whose keys depend on the local that the form declares.
    pub(super) fn of_each_class_form(&mut self) -> Vec<Body> {
        let mut written = vec![];
        for class in Class::ALL {
            for form in forms(class) {
                let text = form.text.replace("{d}", "d").replace("{k}", "{n}").replace("{v}", "v");
                let key = form.declares.map_or(String::new(), |of| {
                    format!("let key = {}; self.d.put(key, 1);", summary(of).replace("{v}", "v"))
                });
                let number = written.len() + 1;
                let (text, _) = self.filled(&format!("{text} {key}"), true, 0);
                let text = with_helpers(number, &text);
                let forms = vec![form.text];
                written.push(Body { text, class, forms, derivable: form.derivable, mistaken: None });
            }
        }
        written
    }
}
