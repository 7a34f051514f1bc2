//! Everything that the errors about missing methods of dictionaries name instead, in one program.

use beehive_core::testing::Kit;
use beehive_core::{App, Dict, Message, Table, handlers};

#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Use {
    key: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct UseWhole {
    key: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct UseViews {
    key: u64,
}

#[derive(App)]
struct Keyed {
    dict: Dict<u64, u64>,
    table: Table<u64, u64, u64>,
}

#[handlers]
impl Keyed {
    #[rcv]
    fn with_keys(&mut self, msg: &Use) -> Vec<u64> {
        let (key, row, value, new) = (msg.key, 1, 2, || 3);
        let change = |value: &mut u64| *value += 1;

        let mut seen = vec![*self.dict.entry(key).or_insert_with(new)];
        self.dict.put(key, value);
        *self.dict.entry(key).or_default() += 1;
        self.dict.update(key, change);
        seen.extend(self.dict.get_mut(&key).copied());
        seen.extend(self.dict.get(&key));
        seen.push(u64::from(self.dict.contains(&key)));
        self.dict.remove(&key);

        self.table.at(key).insert(row, value);
        *self.table.at(key).entry(row).or_default() += 1;
        seen.extend(self.table.at(key).get_mut(&row).copied());
        seen.extend(self.table.at(key).get(&row));
        seen.push(u64::from(self.table.at(key).contains(&row)));
        seen.push(u64::from(!self.table.at(key).is_empty()));
        seen.extend(self.table.at(key).first().map(|(row, _)| *row));
        seen.extend(self.table.at(key).last().map(|(row, _)| *row));
        seen.extend(self.table.at(key).iter().map(|(_, value)| *value));
        self.table.at(key).remove(&row);
        self.table.at(key).insert(row, value);
        self.table.at(key).take_if(|_, _| true);
        self.table.at(key).clear();
        seen
    }
}

#[derive(App)]
struct Whole {
    dict: Dict<u64, u64>,
    table: Table<u64, u64, u64>,
}

#[handlers]
impl Whole {
    #[rcv]
    fn as_a_whole(&mut self, msg: &UseWhole) -> Vec<u64> {
        let (key, row, value, keep) = (msg.key, 1, 2, |_: &u64, _: &u64| true);

        let mut seen = Vec::new();
        self.dict.whole().put(key, value);
        self.dict.whole().for_each_mut(|_, value| *value += 1);
        seen.push(u64::from(self.dict.whole().get(&key).is_some()));
        seen.extend(self.dict.whole().iter().map(|(_, value)| *value));
        self.dict.whole().retain(|_, _| false);

        self.table.whole().at(key).insert(row, value);
        *self.table.whole().at(key).entry(row).or_default() += 1;
        seen.extend(self.table.whole().at(key).get(&row));
        seen.extend(self.table.whole().at(key).get_mut(&row).copied());
        self.table.whole().at(key).retain(keep);
        seen.push(u64::from(!self.table.whole().at(key).is_empty()));
        seen.extend(self.table.whole().iter().map(|(_, _, value)| *value));
        seen.push(self.table.whole().keys().count() as u64);
        seen.push(self.table.whole().iter().count() as u64);
        self.table.whole().at(key).clear();
        seen.push(u64::from(self.table.whole().iter().next().is_none()));
        seen
    }
}

#[derive(App)]
struct Viewed {
    dict: Dict<u64, u64>,
    table: Table<u64, u64, u64>,
}

#[handlers]
impl Viewed {
    #[rcv]
    fn in_views(&mut self, msg: &UseViews) -> Vec<u64> {
        let (key, row, from, to) = (msg.key, 1, 0, 100);

        let mut seen = vec![u64::from(self.dict.shared().contains(&key))];
        seen.extend(self.dict.shared().get(&key));
        seen.extend(self.dict.shared().iter().map(|(key, _)| *key));
        seen.extend(self.dict.shared().range(from..to).map(|(key, _)| *key));
        seen.push(u64::from(self.table.shared().at(key).contains(&row)));
        seen.extend(self.table.shared().at(key).get(&row));
        seen.extend(self.table.shared().at(key).iter().map(|(row, _)| *row));
        seen.extend(self.table.shared().iter().map(|(_, _, value)| *value));
        self.dict.put(key, 10);
        self.table.at(key).insert(row, 20);
        seen
    }
}

#[test]
fn what_the_errors_name_does_what_was_meant() {
    let mut kit = Kit::of::<Keyed>().app::<Whole>().app::<Viewed>().start();
    assert_eq!(kit.request(Use { key: 7 }).unwrap(), [3, 4, 4, 1, 3, 3, 1, 1, 1, 1, 3]);
    assert_eq!(kit.request(UseWhole { key: 7 }).unwrap(), [1, 3, 3, 3, 1, 3, 1, 1, 1]);
    assert_eq!(kit.request(UseViews { key: 7 }).unwrap(), [0, 0]);
    assert_eq!(kit.request(UseViews { key: 7 }).unwrap(), [1, 10, 7, 7, 1, 20, 1, 20]);
}

/// Reads the snippets out of the errors, so that each of them is in the program above.
#[test]
fn everything_that_the_errors_name_is_used_here() {
    let errors = include_str!("../../src/diagnose/renamed.rs");
    let (program, _) = include_str!("other_names.rs").split_once("#[test]").unwrap();
    let named: Vec<&str> = errors
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|code| code.contains("self."))
        .collect();

    assert!(named.len() > 60, "{}", named.len());
    let unused: Vec<&&str> = named.iter().filter(|code| !program.contains(**code)).collect();
    assert!(unused.is_empty(), "{unused:#?}");
}
