//! What a program sees that logs a public type, or puts it into an assertion.

use crate::load::{On, on_workers, start};
use beehive_core::{Address, App, Ctx, Dict, Hive, Message, Table, handlers};
use std::time::Duration;

#[derive(Message)]
#[message(reply = Vec<String>)]
struct Draw {
    pen: u64,
}
#[derive(Message)]
struct Drawn {
    secret: u64,
}
#[derive(Message)]
struct Watch;

#[derive(App, Debug)]
struct Board {
    strokes: Dict<u64, u64>,
    colors: Table<u64, u64, String>,
    watchers: Dict<u64, Address>,
}

#[handlers]
impl Board {
    #[rcv(centralized)]
    fn draw(&mut self, msg: &Draw, ctx: &mut Ctx) -> Vec<String> {
        *self.strokes.entry(msg.pen).or_default() += 1;
        self.colors.at(msg.pen).insert(1, "red".into());
        if let Some(watcher) = self.watchers.get(&0) {
            ctx.send(*watcher, Drawn { secret: 4_711 })
        }

        vec![
            format!("{:?}", self.strokes.whole()),
            format!("{:?}", self.colors.whole()),
            format!("{:?}", self.colors.at(msg.pen)),
            format!("{:?}", self.colors.at(msg.pen).entry(2)),
            format!("{:?}", self.strokes.entry(msg.pen)),
            format!("{:?}", self.strokes.shared()),
            format!("{:?}", self.colors.shared()),
            format!("{:?}", self.colors.shared().at(msg.pen)),
        ]
    }

    #[rcv(centralized)]
    fn watch(&mut self, _: &Watch, ctx: &mut Ctx) {
        self.watchers.put(0, ctx.sender());
    }
}

#[test]
fn handles_show_names_and_contents_show_what_they_hold() {
    on_workers(1, async {
        let builder = Hive::builder().app::<Board>();
        assert_eq!(format!("{builder:?}"), r#"Builder { id: HiveId(0), apps: ["board"], .. }"#);
        let (hive, _) = start(builder, On::Memory);
        assert_eq!(format!("{hive:?}"), "Hive { id: HiveId(0), .. }");

        let content = [
            "{7: 1}",
            r#"{(7, 1): "red"}"#,
            r#"{1: "red"}"#,
            "RowEntry { key: 2, value: None }",
            "Entry { key: 7, value: Some(1) }",
            // the views of the transaction do not have its own changes
            "{}",
            "{}",
            "{}",
        ];
        assert_eq!(hive.request(Draw { pen: 7 }).await.unwrap(), content);
        // cells are not shown, because which of them are here depends on the bees
        let shown = hive.read(|board: &Board| format!("{board:?}")).unwrap();
        let name = |kind, name| format!(r#"{kind} {{ name: "{name}", .. }}"#);
        let (strokes, colors) = (name("Dict", "strokes"), name("Table", "colors"));
        let watchers = name("Dict", "watchers");
        assert_eq!(shown, format!("Board {{ strokes: {strokes}, colors: {colors}, watchers: {watchers} }}"));

        let mut io = hive.io();
        assert!(format!("{io:?}").starts_with("Io { hive: Hive { id: HiveId(0), .. }, id: "), "{io:?}");
        io.emit(Watch);
        io.flush().await;
        hive.request(Draw { pen: 7 }).await.unwrap();
        let mail = io.receive().await;
        let mail = mail.into_answers::<Watch>().unwrap_err();
        let shown = format!("{mail:?}");
        assert!(shown.starts_with("Mail { messages: ") && shown.ends_with("Drawn\", len: 1 }"), "{shown}");

        io.emit(Draw { pen: 8 });
        io.flush().await;
        loop {
            let mail = io.receive().await;
            if mail.messages::<Drawn>().is_some() {
                continue;
            }
            assert_eq!(format!("{mail:?}"), "Mail { answers: .., len: 1 }");
            let shown = format!("{:?}", mail.into_answers::<Draw>().unwrap());
            assert!(shown.starts_with(r#"[Ok(["{7: 2, 8: 1}", "#), "{shown}");
            break;
        }
        hive.stop(Duration::from_secs(5)).await;
    })
}
