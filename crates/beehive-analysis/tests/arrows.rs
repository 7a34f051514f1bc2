//! Imports point one way: the rooms that `ARCHITECTURE.md` draws, and the arrows that it allows between them, compared with
//! what the sources import.
//!
//! `cargo test -p beehive-analysis --test arrows -- --nocapture` prints the picture. A block of `ARCHITECTURE.md` describes one folder:
//!
//! ```text
//! <!-- arrows: crates/beehive-core/src/hive -->
//! route: run ownership bee
//! top = builder stop: route run
//! ```
//!
//! A line names a room, the files and folders that it consists of (its own name, if none are given), and the rooms that it
//! may import. A crate of this workspace may stand for a room: if one line names it, only the rooms that name it may import it.
//! An arrow that is not allowed, an allowed arrow that nothing uses, a file in no room, and a circle are failures.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// A folder of sources, as `ARCHITECTURE.md` describes it.
struct Plan {
    folder: String,
    /// The rooms in the order of the page, and the rooms that each may import.
    rooms: Vec<(String, BTreeSet<String>)>,
    /// The room of each file or folder.
    room_of: BTreeMap<String, String>,
}

/// Where one room imports another: file and imported path.
type Arrows = BTreeMap<(String, String), BTreeSet<(String, String)>>;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in `crates/`")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_string)
}

/// Whether a name is that of another crate of this workspace.
fn is_crate(name: &str) -> bool {
    name.starts_with("beehive_")
}

/// The plans that a page contains.
fn plans(page: &str) -> Vec<Plan> {
    let mut plans = Vec::new();
    for part in page.split("<!-- arrows: ").skip(1) {
        let (folder, rest) = part.split_once(" -->").expect("the comment ends");
        let block = rest.split("```").nth(1).expect("a block follows the comment");
        let mut plan = Plan { folder: folder.to_string(), rooms: Vec::new(), room_of: BTreeMap::new() };

        for line in block.lines().skip(1).filter(|line| !line.trim().is_empty()) {
            let (left, right) = line.split_once(':').unwrap_or_else(|| panic!("no colon in `{line}`"));
            let (room, members) = left.split_once('=').unwrap_or((left, left));
            let room = room.trim().to_string();
            for member in words(members) {
                let before = plan.room_of.insert(member.clone(), room.clone());
                assert_eq!(before, None, "`{member}` is in two rooms of {folder}");
            }
            plan.rooms.push((room, words(right).collect()));
        }

        let crates: BTreeSet<String> =
            plan.rooms.iter().flat_map(|(_, below)| below).filter(|room| is_crate(room)).cloned().collect();
        plan.rooms.extend(crates.into_iter().map(|name| (name, BTreeSet::new())));
        plans.push(plan);
    }
    plans
}

/// Collects the paths that a file names, each from the root of its crate.
struct Paths<'a> {
    /// The module of the file.
    module: &'a [String],
    found: BTreeSet<Vec<String>>,
}

impl Paths<'_> {
    fn note(&mut self, path: &[String]) {
        let mut from = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self") => self.module.to_vec(),
            Some("super") => self.module[..self.module.len().saturating_sub(1)].to_vec(),
            Some(name) if is_crate(name) => {
                self.found.insert(path.to_vec());
                return;
            }
            _ => return,
        };
        let mut rest = &path[1..];
        while rest.first().is_some_and(|segment| segment == "super") {
            from.pop();
            rest = &rest[1..];
        }
        from.extend(rest.iter().cloned());
        self.found.insert(from);
    }

    fn note_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_use(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_use(tree, before)),
            syn::UseTree::Name(name) if name.ident == "self" => self.note(before),
            syn::UseTree::Name(name) => self.note(&[before.as_slice(), &[name.ident.to_string()]].concat()),
            syn::UseTree::Rename(name) => self.note(&[before.as_slice(), &[name.ident.to_string()]].concat()),
            syn::UseTree::Glob(_) => self.note(before),
        }
    }

    /// Paths inside a macro's arguments, which are only tokens.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.note(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(&path);
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item)
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.note_use(&item.tree, &mut Vec::new())
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        syn::visit::visit_path(self, path)
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.note_tokens(call.tokens.clone())
    }
}

fn paths_in(source: &str, module: &[String]) -> BTreeSet<Vec<String>> {
    let file = syn::parse_file(source).expect("the file compiles");
    let mut paths = Paths { module, found: BTreeSet::new() };
    paths.visit_file(&file);
    paths.found
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into)
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && path.file_stem().unwrap() != "tests"
        {
            into.push(path)
        }
    }
    into.sort();
}

/// The module of a file, from the root of its crate.
fn module_of(folder: &Path, file: &Path) -> Vec<String> {
    let source_root =
        folder.ancestors().find(|ancestor| ancestor.ends_with("src")).expect("a folder in `src`");
    let inside = file.strip_prefix(source_root).expect("a file of the folder").with_extension("");
    let mut module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// The arrows between the rooms of a folder.
fn arrows(plan: &Plan) -> Arrows {
    let folder = repository().join(&plan.folder);
    let prefix = module_of(&folder, &folder.join("mod.rs"));
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut arrows = Arrows::new();

    for file in files {
        let inside = file.strip_prefix(&folder).expect("it was found there");
        let entry = inside.iter().next().expect("a file has a name").to_string_lossy().replace(".rs", "");
        let room = plan.room_of.get(&entry);
        let room = room.unwrap_or_else(|| panic!("{}/{entry} is in no room of ARCHITECTURE.md", plan.folder));
        let source = fs::read_to_string(&file).expect("the file can be read");

        for path in paths_in(&source, &module_of(&folder, &file)) {
            let target = match path.first().filter(|first| is_crate(first)) {
                Some(name) => plan.rooms.iter().map(|(room, _)| room).find(|room| *room == name),
                None => {
                    let Some(target) = path.strip_prefix(prefix.as_slice()).and_then(|rest| rest.first())
                    else {
                        continue;
                    };
                    // what is no file or folder of its own is an item of the topmost file
                    plan.room_of.get(target).or_else(|| plan.room_of.get("mod"))
                }
            };
            if let Some(target) = target.filter(|target| *target != room) {
                let from = inside.display().to_string();
                arrows.entry((room.clone(), target.clone())).or_default().insert((from, path.join("::")));
            }
        }
    }
    arrows
}

/// The floor of each room: 0 for those that import none. `Err`: the rooms of a circle.
fn floors(rooms: &[(String, BTreeSet<String>)]) -> Result<BTreeMap<String, usize>, Vec<String>> {
    let mut floors: BTreeMap<String, usize> = BTreeMap::new();
    while floors.len() < rooms.len() {
        let ready: Vec<(String, usize)> = rooms
            .iter()
            .filter(|(room, _)| !floors.contains_key(room))
            .filter_map(|(room, below)| {
                let floors: Option<Vec<usize>> = below.iter().map(|room| floors.get(room).copied()).collect();
                Some((room.clone(), floors?.into_iter().max().map_or(0, |floor| floor + 1)))
            })
            .collect();
        if ready.is_empty() {
            return Err(rooms
                .iter()
                .map(|(room, _)| room.clone())
                .filter(|r| !floors.contains_key(r))
                .collect());
        }
        floors.extend(ready);
    }
    Ok(floors)
}

fn print(plan: &Plan, floors: &BTreeMap<String, usize>, arrows: &Arrows) {
    println!("\n{}: {} rooms, {} arrows", plan.folder, plan.rooms.len(), arrows.len());
    for floor in (0..=floors.values().copied().max().unwrap_or(0)).rev() {
        for (room, _) in plan.rooms.iter().filter(|(room, _)| floors[room] == floor) {
            let below = arrows.keys().filter(|(from, _)| from == room).map(|(_, to)| to.as_str());
            println!("  {floor:>2}  {room:<12} -> {}", below.collect::<Vec<_>>().join(" "));
        }
    }
}

/// What is wrong with the arrows of a folder.
fn complaints(plan: &Plan, arrows: &Arrows) -> Vec<String> {
    let allowed =
        |from: &str, to: &str| plan.rooms.iter().any(|(room, below)| room == from && below.contains(to));
    let mut complaints = Vec::new();
    for ((from, to), uses) in arrows.iter().filter(|((from, to), _)| !allowed(from, to)) {
        let uses: Vec<String> = uses.iter().map(|(file, path)| format!("    {file} names {path}")).collect();
        complaints.push(format!("{}: `{from}` may not import `{to}`:\n{}", plan.folder, uses.join("\n")));
    }
    for (room, below) in &plan.rooms {
        for to in below.iter().filter(|to| !arrows.contains_key(&(room.clone(), to.to_string()))) {
            complaints.push(format!("{}: nothing in `{room}` imports `{to}` any more", plan.folder));
        }
    }
    complaints
}

#[test]
fn imports_follow_the_arrows_of_the_architecture() {
    let page = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the page is there");
    let plans = plans(&page);
    assert!(
        plans.iter().any(|plan| plan.folder.ends_with("core/src/hive")),
        "the hive's rooms are described"
    );
    let mut wrong = Vec::new();
    for plan in &plans {
        let arrows = arrows(plan);
        match floors(&plan.rooms) {
            Ok(floors) => print(plan, &floors, &arrows),
            Err(circle) => wrong.push(format!("{}: a circle among {circle:?}", plan.folder)),
        }
        wrong.extend(complaints(plan, &arrows));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_are_found_wherever_a_file_names_them() {
    let source = "
        use crate::{a::{b::B, c}, d as e};
        use super::super::f;
        fn g() { let _ = crate::h::i::<crate::j::K>(); assert!(matches!(x, crate::l::M)); }
        #[cfg(test)] mod tests { use crate::n; }
        #[cfg(test)] use crate::o;
        use beehive_of::r;
    ";
    let module = ["p".to_string(), "q".to_string()];
    let found: Vec<String> = paths_in(source, &module).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::b::B", "a::c", "beehive_of::r", "d", "f", "h::i", "j::K", "l::M"]);
}

#[test]
fn a_circle_is_found() {
    let room = |name: &str, below: &str| (name.to_string(), words(below).collect());
    assert_eq!(floors(&[room("a", "b c"), room("b", "c"), room("c", "")]).map(|f| f["a"]), Ok(2));
    let circle = floors(&[room("a", "b"), room("b", "c"), room("c", "b")]);
    assert_eq!(circle, Err(vec!["a".into(), "b".into(), "c".into()]));
}

#[test]
fn an_arrow_that_is_not_allowed_and_one_that_is_not_used_are_reported() {
    let page = "<!-- arrows: crates/x/src/y -->\n```text\na: b\nb:\nc: b\n```";
    let plans = plans(page);
    let uses = |from: &str, to: &str| ((from.to_string(), to.to_string()), BTreeSet::new());
    let arrows = Arrows::from([uses("a", "b"), uses("b", "c")]);
    let complaints = complaints(&plans[0], &arrows);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].contains("`b` may not import `c`") && complaints[1].contains("`c` imports `b`"));
}
