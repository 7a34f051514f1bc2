//! Checks that imports point one way: compares the rooms that `ARCHITECTURE.md` lists, and the imports that it allows
//! between them, with the imports of the sources.
//!
//! `cargo test -p beehive-analysis --test arrows -- --nocapture` prints the picture. A block of `ARCHITECTURE.md` describes one folder:
//!
//! ```text
//! <!-- arrows: crates/beehive-core/src/hive -->
//! route: run ownership bee
//! top = builder stop: route run
//! ```
//!
//! A line names a room, the files and folders that it consists of (by default those with the name of the room), and the
//! rooms that it may import. A crate of this workspace may be listed like a room: if a line names it, only the rooms
//! that name it may import it. The test fails if an import is not allowed, if nothing uses an allowed import, if a file
//! is in no room, or if rooms import each other in a circle.
//!
//! A name counts as an import from the room that declares it, and from each room through which it is
//! re-exported. The test follows renamed imports, `*`, other names of a crate, and paths in macros and
//! attributes. It does not detect the use of a method or a field if the type of the value is never named, nor
//! a path that a macro assembles.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::ext::IdentExt;
use syn::visit::Visit;

/// A folder of sources, as `ARCHITECTURE.md` describes it.
struct Plan {
    folder: String,
    /// The rooms in the order of the page, and the rooms that each may import.
    rooms: Vec<(String, BTreeSet<String>)>,
    /// The room of each file or folder.
    room_of: BTreeMap<String, String>,
}

/// The places where one room imports another: file and imported path.
type Arrows = BTreeMap<(String, String), BTreeSet<(String, String)>>;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in `crates/`")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_string)
}

/// Checks whether a name is that of a different crate of this workspace.
fn is_crate(name: &str) -> bool {
    name.starts_with("beehive_")
}

/// Returns the plans that a page contains.
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

/// A path of modules or items, from the root of its crate.
type Segments = Vec<String>;

/// One crate: its modules, and the names that their `use` items import.
#[derive(Default)]
struct Sources {
    /// Other names of this crate (`crate`) and of other crates, from the `extern crate` items.
    aliases: BTreeMap<String, String>,
    /// All modules, both those in files of their own and those inside other files.
    modules: BTreeSet<Segments>,
    /// The module that declares each macro with `#[macro_export]`, which puts the macro into the root of the crate.
    macros: BTreeMap<String, Segments>,
    /// Modules that exist in tests only.
    test_modules: BTreeSet<Segments>,
    /// For each name that a `use` brings into a module, the paths that it may stand for.
    names: BTreeMap<Segments, BTreeSet<Segments>>,
    /// The modules whose items each module imports by `*`.
    globs: BTreeMap<Segments, BTreeSet<Segments>>,
    /// The paths that each file names.
    named: BTreeMap<PathBuf, BTreeSet<Segments>>,
    /// Places at which a file includes sources that this test does not read.
    hidden: BTreeSet<String>,
}

/// Reads one file: its modules, its `use` items and all paths in it.
struct Reader<'a> {
    crate_sources: &'a mut Sources,
    /// The module in which the reader is.
    module: Segments,
    file: PathBuf,
}

/// The longest chain of re-exports that is followed.
const RE_EXPORTS_MAX: usize = 8;

/// Keywords before which a path ends, so `impl ::a::B` is not read as `impl::a::B`.
const KEYWORDS: [&str; 14] =
    ["as", "dyn", "else", "for", "if", "impl", "in", "let", "match", "mut", "ref", "return", "use", "where"];

fn name_of(ident: &proc_macro2::Ident) -> String {
    ident.unraw().to_string()
}

impl Sources {
    /// Reads a crate whose files are given as (path, module, source), the root first.
    fn read(files: &[(PathBuf, Segments, String)]) -> Sources {
        let mut sources = Sources::default();
        let parsed: Vec<_> =
            files.iter().map(|(_, _, source)| syn::parse_file(source).expect("the file compiles")).collect();

        sources.modules.extend(files.iter().map(|(_, module, _)| module.clone()));
        for item in parsed.iter().flat_map(|file| &file.items) {
            if let syn::Item::ExternCrate(item) = item {
                let name = if item.ident == "self" { "crate".to_string() } else { name_of(&item.ident) };
                let alias = item.rename.as_ref().map_or(&item.ident, |(_, alias)| alias);
                sources.aliases.insert(name_of(alias), name);
            }
        }
        // `use a::b` names a child module or another crate, so all modules have to be known before
        for ((_, module, _), file) in files.iter().zip(&parsed) {
            sources.note_modules(module, &file.items)
        }
        // read each file twice, because a path may come before the `use` of its first name
        for ((path, module, _), file) in files.iter().zip(&parsed).chain(files.iter().zip(&parsed)) {
            let mut reader =
                Reader { module: module.clone(), file: path.clone(), crate_sources: &mut sources };
            if !reader.crate_sources.is_in_tests(module) {
                reader.visit_file(file)
            }
        }
        sources
    }

    fn note_modules(&mut self, module: &[String], items: &[syn::Item]) {
        for item in items {
            if let syn::Item::Macro(syn::ItemMacro { attrs, ident: Some(name), .. }) = item
                && attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
            {
                self.macros.insert(name_of(name), module.to_vec());
            }
            let syn::Item::Mod(item) = item else { continue };
            let inner = [module, &[name_of(&item.ident)]].concat();
            self.modules.insert(inner.clone());
            if is_for_tests(&item.attrs) {
                self.test_modules.insert(inner.clone());
            }
            if let Some((_, items)) = &item.content {
                self.note_modules(&inner, items)
            }
        }
    }

    fn is_in_tests(&self, module: &[String]) -> bool {
        (1..=module.len()).any(|end| self.test_modules.contains(&module[..end]))
    }

    /// Resolves `path` in a module. Returns a path from the root of the crate or one that begins with the
    /// name of another crate, or `None` for paths of the standard library, variables and the like.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Segments> {
        let (first, mut rest) = path.split_first()?;
        let first = self.aliases.get(first).unwrap_or(first);
        let mut from = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len().saturating_sub(1)].to_vec(),
            name if is_crate(name) => return Some([&[name.to_string()], rest].concat()),
            _ => {
                let child = [module, std::slice::from_ref(first)].concat();
                let is_known = |path: &Segments| self.modules.contains(path) || self.names.contains_key(path);
                let globs = self.globs.get(module);
                let in_glob =
                    || globs?.iter().map(|glob| [glob, std::slice::from_ref(first)].concat()).find(is_known);
                let base = if is_known(&child) { child } else { in_glob()? };
                return Some([&base, rest].concat());
            }
        };
        while rest.first().is_some_and(|segment| segment == "super") {
            from.pop();
            rest = &rest[1..];
        }
        Some([&from, rest].concat())
    }

    /// Returns a path and every path that it stands for because of `use` items.
    fn meanings(&self, path: &Segments) -> BTreeSet<Segments> {
        let mut found = BTreeSet::from([path.clone()]);
        let mut last = found.clone();
        for _ in 0..RE_EXPORTS_MAX {
            let mut next = BTreeSet::new();
            for path in &last {
                for end in 1..=path.len() {
                    let (name, rest) = path.split_at(end);
                    for target in self.names.get(name).into_iter().flatten() {
                        next.insert([target, rest].concat());
                    }
                    let is_known = self.modules.contains(name) || self.names.contains_key(name);
                    if is_known || is_crate(&path[0]) {
                        continue;
                    }
                    // the module does not declare the name, so it may come from a module that is imported by
                    // `*`
                    for glob in self.globs.get(&name[..end - 1]).into_iter().flatten() {
                        let through = [glob.as_slice(), &name[end - 1..]].concat();
                        if self.modules.contains(&through) || self.names.contains_key(&through) {
                            next.insert([&through, rest].concat());
                        }
                    }
                }
            }
            last = next.difference(&found).cloned().collect();
            found.extend(next);
        }
        found
    }

    /// Returns the paths that a file names, directly or through re-exports. For other crates, only direct
    /// mentions count, because a room may make types of another crate part of its own interface.
    fn paths_of(&self, file: &Path) -> BTreeSet<Segments> {
        let named = self.named.get(file).into_iter().flatten();
        named
            .flat_map(|path| {
                let direct = path.clone();
                self.meanings(path)
                    .into_iter()
                    .filter(move |meaning| *meaning == direct || !is_crate(&meaning[0]))
            })
            .filter(|path| !path.is_empty())
            .map(|path| match self.macros.get(&path[0]) {
                Some(module) if !self.modules.contains(&path[..1]) => [module.as_slice(), &path].concat(),
                _ => path,
            })
            .collect()
    }
}

impl Reader<'_> {
    fn note(&mut self, path: &[String]) {
        // a single name is a variable, or refers to a `use` that is recorded separately
        if path.len() > 1 {
            self.note_all(path)
        }
    }

    fn note_all(&mut self, path: &[String]) {
        if let Some(path) = self.crate_sources.absolute(&self.module, path) {
            self.crate_sources.named.entry(self.file.clone()).or_default().insert(path);
        }
    }

    fn note_hidden(&mut self, what: &str) {
        self.crate_sources.hidden.insert(format!("{}: `{what}` hides sources", self.file.display()));
    }

    fn note_use(&mut self, tree: &syn::UseTree, before: &mut Segments) {
        let (name, alias) = match tree {
            syn::UseTree::Path(path) => {
                before.push(name_of(&path.ident));
                self.note_use(&path.tree, before);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.note_use(tree, before));
            }
            syn::UseTree::Glob(_) => {
                self.note_all(before);
                if let Some(module) = self.crate_sources.absolute(&self.module, before) {
                    self.crate_sources.globs.entry(self.module.clone()).or_default().insert(module);
                }
                return;
            }
            syn::UseTree::Name(name) => (name_of(&name.ident), None),
            syn::UseTree::Rename(name) => (name_of(&name.ident), Some(name_of(&name.rename))),
        };

        let mut path = before.clone();
        if name != "self" || before.is_empty() {
            path.push(name);
        }
        self.note_all(&path);
        if let (Some(local), Some(target)) =
            (alias.or_else(|| path.last().cloned()), self.crate_sources.absolute(&self.module, &path))
        {
            let local = [self.module.as_slice(), &[local]].concat();
            if local != target {
                self.crate_sources.names.entry(local).or_default().insert(target);
            }
        }
    }

    /// Notes the paths inside the arguments of a macro or of an attribute, which are only tokens. Each path begins with
    /// `before`, which is not empty inside the braces of a `use`.
    fn note_tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let mut path = before.to_vec();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note(&std::mem::replace(&mut path, before.to_vec()));
                    }
                    let name = name_of(&ident);
                    if KEYWORDS.contains(&name.as_str()) {
                        path = before.to_vec();
                    } else {
                        path.push(name);
                    }
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Literal(literal) => {
                    self.note(&std::mem::replace(&mut path, before.to_vec()));
                    self.note_text(&literal);
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.note(&path);
                    let is_use = colons == 2 && group.delimiter() == proc_macro2::Delimiter::Brace;
                    let inside = if is_use { path } else { Vec::new() };
                    self.note_tokens(group.stream(), &inside);
                    path = before.to_vec();
                    colons = 0;
                }
                TokenTree::Punct(_) => {
                    self.note(&std::mem::replace(&mut path, before.to_vec()));
                    colons = 0;
                }
            }
        }
        self.note(&path);
    }

    /// Notes a path inside a string, as in `#[serde(with = "crate::a")]`.
    fn note_text(&mut self, literal: &proc_macro2::Literal) {
        if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
            && let Ok(path) = text.parse::<syn::Path>()
            && path.segments.len() > 1
        {
            self.visit_path(&path)
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.module.push(name_of(&item.ident));
            syn::visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.note_use(&item.tree, &mut Vec::new())
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.note(&[name_of(&item.ident), "*".to_string()])
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Segments = path.segments.iter().map(|segment| name_of(&segment.ident)).collect();
        self.note(&segments);
        syn::visit::visit_path(self, path)
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.segments.last().is_some_and(|name| name.ident == "include") {
            self.note_hidden("include!")
        }
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone(), &[])
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("path") {
            self.note_hidden("#[path]")
        }
        if attribute.path().is_ident("doc") {
            return;
        }
        self.visit_path(attribute.path());
        if let syn::Meta::List(list) = &attribute.meta {
            self.note_tokens(list.tokens.clone(), &[])
        }
    }
}

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, into)
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path)
        }
    }
    into.sort();
}

/// Reads the crate to which a folder belongs.
fn crate_of(folder: &Path) -> Sources {
    let root = folder.ancestors().find(|ancestor| ancestor.ends_with("src")).expect("a folder in `src`");
    let mut files = Vec::new();
    files_below(root, &mut files);
    let read = |file: PathBuf| {
        let source = fs::read_to_string(&file).expect("the file can be read");
        (file.clone(), module_of(folder, &file), source)
    };
    Sources::read(&files.into_iter().map(read).collect::<Vec<_>>())
}

/// Returns the module of a file, from the root of its crate.
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

/// Returns the imports between the rooms of a folder, and the places that hide sources from this test.
fn arrows(plan: &Plan) -> (Arrows, BTreeSet<String>) {
    let folder = repository().join(&plan.folder);
    let prefix = module_of(&folder, &folder.join("mod.rs"));
    let sources = crate_of(&folder);
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    let mut arrows = Arrows::new();

    for file in files.iter().filter(|file| !sources.is_in_tests(&module_of(&folder, file))) {
        let inside = file.strip_prefix(&folder).expect("it was found there");
        let entry = inside.iter().next().expect("a file has a name").to_string_lossy().replace(".rs", "");
        let room = plan.room_of.get(&entry);
        let room = room.unwrap_or_else(|| panic!("{}/{entry} is in no room of ARCHITECTURE.md", plan.folder));

        for path in sources.paths_of(file) {
            let target = match path.first().filter(|first| is_crate(first)) {
                Some(name) => plan.rooms.iter().map(|(room, _)| room).find(|room| *room == name),
                None => {
                    let Some(target) = path.strip_prefix(prefix.as_slice()).and_then(|rest| rest.first())
                    else {
                        continue;
                    };
                    // a path that names no file or folder is an item of the topmost file
                    let top = if prefix.is_empty() { "lib" } else { "mod" };
                    plan.room_of.get(target).or_else(|| plan.room_of.get(top))
                }
            };
            if let Some(target) = target.filter(|target| *target != room) {
                let from = inside.display().to_string();
                arrows.entry((room.clone(), target.clone())).or_default().insert((from, path.join("::")));
            }
        }
    }
    (arrows, sources.hidden)
}

/// Returns the floor of each room, which is 0 for a room that imports no other room. Returns the rooms of a
/// circle as an error if there is one.
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

/// Returns descriptions of everything that is wrong with the imports of a folder.
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
        let (arrows, hidden) = arrows(plan);
        wrong.extend(hidden);
        match floors(&plan.rooms) {
            Ok(floors) => print(plan, &floors, &arrows),
            Err(circle) => wrong.push(format!("{}: a circle among {circle:?}", plan.folder)),
        }
        wrong.extend(complaints(plan, &arrows));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the paths named in the source file of module `p::q`, in a crate that also contains the modules `others`.
fn paths_in(source: &str, others: &[(&str, &str)]) -> Vec<String> {
    let module = |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_string).collect();
    let others = others.iter().map(|(path, source)| (PathBuf::from(path), module(path), source.to_string()));
    let file = (PathBuf::from("here"), module("p::q"), source.to_string());
    let sources = Sources::read(&others.chain([file]).collect::<Vec<_>>());
    sources.paths_of(Path::new("here")).iter().map(|path| path.join("::")).collect()
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
    assert_eq!(paths_in(source, &[]), ["a::b::B", "a::c", "beehive_of::r", "d", "f", "h::i", "j::K", "l::M"]);
}

#[test]
fn no_spelling_of_a_path_goes_unnoticed() {
    let others = [
        ("", "extern crate self as own; extern crate beehive_of as of; mod a; pub use a::Root;"),
        ("a", "#[macro_export] macro_rules! exported { () => {} }"),
        (
            "third",
            "pub use crate::a::Item; pub use crate::a as renamed; pub use inner::*; mod inner { pub use crate::a::Deep; }",
        ),
    ];
    for (source, path) in [
        ("fn f() { own::a::x() }", "a::x"),
        ("use of::X;", "beehive_of::X"),
        ("extern crate beehive_of as y;", "beehive_of::*"),
        ("mod inner { use super::super::super::a::X; }", "a::X"),
        ("use super::super as root; type T = root::a::X;", "a::X"),
        ("use crate as root; type T = root::a::X;", "a::X"),
        ("use crate::*; type T = a::X;", "a::X"),
        ("use crate::r#a::X;", "a::X"),
        ("use crate::third::Item;", "a::Item"),
        ("use crate::third::renamed::X;", "a::X"),
        ("use crate::third::Deep;", "a::Deep"),
        ("use crate::Root;", "a::Root"),
        ("macro_rules! m { () => { use $crate::{b, a::{X, Y}}; } }", "a::X"),
        ("m! { impl ::beehive_of::X }", "beehive_of::X"),
        ("crate::a::m! {}", "a::m"),
        ("crate::exported! {}", "a::exported"),
        ("#[serde(with = \"crate::a::x\")] struct S;", "a::x"),
        ("#[derive(crate::a::X)] struct S;", "a::X"),
    ] {
        let found = paths_in(source, &others);
        assert!(found.iter().any(|one| one == path), "{source}: {found:?}");
    }
    assert_eq!(paths_in("fn f() { let a = 1; a; std::mem::drop(a) }", &others), [""; 0]);
}

#[test]
fn sources_from_elsewhere_are_reported() {
    let files = ["#[path = \"../x.rs\"] mod x;", "include!(\"../x.rs\");"];
    let files = files.map(|source| (PathBuf::from(source), Vec::new(), source.to_string()));
    assert_eq!(Sources::read(&files).hidden.len(), 2);
}

/// Returns descriptions of everything that is wrong with the dependencies of crates. The crates are given by
/// name and manifest in the order of the page, and each may depend only on earlier ones.
fn crate_complaints(crates: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (at, (name, manifest)) in crates.iter().enumerate() {
        let tables = manifest.split("\n[").filter(|table| table.starts_with("dependencies]"));
        for line in tables.flat_map(str::lines).filter(|line| line.starts_with("beehive-")) {
            let below: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
            if !crates[..at].iter().any(|(earlier, _)| *earlier == below) {
                complaints.push(format!("`{name}` may not depend on `{below}`"))
            }
        }
    }
    complaints
}

#[test]
fn crates_depend_only_on_those_above_them_in_the_code_map() {
    let page = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the page is there");
    let map =
        page.split("## Code map").nth(1).and_then(|rest| rest.split("\n#").next()).expect("the code map");
    let names = map.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let crates: Vec<(String, String)> = names
        .map(|name| {
            let folder = repository().join("crates").join(name);
            let folder = if folder.exists() { folder } else { repository().to_path_buf() };
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
            (name.to_string(), manifest)
        })
        .collect();

    let count = fs::read_dir(repository().join("crates")).expect("the folder of crates").count();
    assert_eq!(crates.len(), count + 1, "the code map lists every crate");
    assert_eq!(crate_complaints(&crates), [""; 0]);

    let reversed: Vec<_> = crates.iter().rev().cloned().collect();
    let complaints = crate_complaints(&reversed);
    assert!(
        complaints.contains(&"`beehive-core` may not depend on `beehive-protocol`".to_string()),
        "{complaints:?}"
    );
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
