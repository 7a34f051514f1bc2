//! The impl block under analysis: its functions, each analyzed once per pattern of arguments that depend on
//! state.
//!
//! A function is analyzed repeatedly until a round learns nothing new. A fact found late in a loop (a local
//! is changed under a condition on state, the loop may end early) holds from the loop's first statement on,
//! so the next round starts with it. [`Facts`] only grow and there are finitely many syntax nodes, so the
//! rounds end. The printed nodes come from the last round, in which all the assumed facts held; this is the
//! induction mentioned in the crate's documentation.

use crate::faults::{Fault, Faults};
use crate::node::FunctionMap;
use crate::pass::Pass;
use crate::pass::locals::read::Read;
use crate::pass::macros::arguments::Arguments;
use crate::pass::order::hashes::Hidden;
use crate::syntax::{find_name, names};
use crate::value::{Site, Sources, Taint, Variables};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use syn::{Block, Expr, ExprClosure, ImplItemFn, Macro};

/// Facts about the syntax nodes of one function, regardless of the path that reaches them.
#[derive(Default, Debug, Clone)]
pub(crate) struct Facts {
    /// Locals that are not functions of the message although their initial values are.
    pub poisoned: BTreeMap<Site, Taint>,
    /// Loops, blocks and matches with state-dependent control flow.
    pub undecided: BTreeSet<Site>,
    /// Whether the analysis follows what changes in loops that state may end; see `pass::stops`.
    pub follows_stops: bool,
    /// Loops that the handler may leave earlier than the map, because of state, and that it never continues because of state.
    pub stopped: BTreeSet<Site>,
    /// Locals that change in loops inside their scope, with those loops.
    pub varying: BTreeMap<Site, BTreeSet<Site>>,
    /// The sources that determine how often those loops run.
    pub decided_by: BTreeMap<Site, Sources>,
    /// For each local that gets a view assigned after its declaration: the declarations of the locals that those views
    /// point into. The numbers 0 to 2 in the second set stand for the views that do not belong to a local.
    pub stored: BTreeMap<Site, (BTreeSet<Site>, Variables)>,
    /// Locals that may change through a shared reference to them, by interior mutability.
    pub touched: BTreeSet<Site>,
}

impl Facts {
    fn is_empty(&self) -> bool {
        self.poisoned.is_empty()
            && self.undecided.is_empty()
            && self.stopped.is_empty()
            && self.varying.is_empty()
            && self.decided_by.is_empty()
            && self.stored.is_empty()
            && self.touched.is_empty()
    }

    fn absorb(&mut self, new: Facts) {
        self.poisoned.extend(new.poisoned);
        self.undecided.extend(new.undecided);
        self.stopped.extend(new.stopped);
        self.touched.extend(new.touched);
        for (site, loops) in new.varying {
            self.varying.entry(site).or_default().extend(loops);
        }
        for (site, (sites, nameless)) in new.stored {
            let known = self.stored.entry(site).or_default();
            known.0.extend(sites);
            known.1.extend(nameless);
        }
        for (site, sources) in new.decided_by {
            self.decided_by.entry(site).or_default().and(&sources);
        }
    }
}

/// Properties that depend only on the text of a function. The first round that needs a property computes it
/// for all rounds.
#[derive(Default)]
pub(crate) struct Once {
    /// Every name in the function, with repetitions.
    pub mentioned: OnceCell<Vec<String>>,
    /// Attributes in the body that decide whether part of it is compiled.
    pub conditional: OnceCell<Vec<Span>>,
    /// The places where it may have hash maps and hash sets that no local shows.
    pub hidden: OnceCell<Hidden>,
    /// The statements that are macros.
    pub macro_statements: OnceCell<Vec<Site>>,
}

/// Syntax that does not appear literally in the block: parsed macro arguments, and closure bodies analyzed as loop
/// bodies. Each is built once and kept, so that its nodes keep their addresses.
#[derive(Default)]
pub(crate) struct Arena {
    arguments: RefCell<BTreeMap<Site, Rc<Option<Arguments>>>>,
    bodies: RefCell<BTreeMap<Site, Rc<Block>>>,
}

impl Arena {
    pub(crate) fn arguments(&self, of: &Macro, form: &str) -> Rc<Option<Arguments>> {
        let mut known = self.arguments.borrow_mut();
        known
            .entry(Site::of(of))
            .or_insert_with(|| Rc::new(Arguments::parse(form, of.tokens.clone())))
            .clone()
    }

    /// Returns the body of a closure as a block.
    pub(crate) fn body(&self, of: &ExprClosure) -> Rc<Block> {
        let mut known = self.bodies.borrow_mut();
        let block = || match &*of.body {
            Expr::Block(b) => b.block.clone(),
            e => Block { brace_token: Default::default(), stmts: vec![syn::Stmt::Expr(e.clone(), None)] },
        };
        known.entry(Site::of(of)).or_insert_with(|| Rc::new(block())).clone()
    }
}

/// The name of a function, the index of its version, and, for each parameter, whether it depends on state.
type Pattern = (String, usize, Vec<bool>);

/// The functions of a block by name. Several functions have the same name if `#[cfg]` selects one of them.
pub(crate) type Functions<'a> = BTreeMap<String, Vec<&'a ImplItemFn>>;

/// The impl block under analysis.
pub(crate) struct Unit<'a> {
    functions: Functions<'a>,
    /// Functions and macros that the programmer has promised are deterministic.
    pub trusted: Vec<String>,
    pub faults: Faults,
    pub arena: Arena,
    /// The functions whose tokens are known, with their tokens and the names in them.
    written: BTreeMap<Site, (&'a TokenStream, &'a [String])>,
    /// The findings about the views that branches, blocks and closures may yield.
    reads: RefCell<BTreeMap<Site, Rc<Read>>>,
    boxes: OnceCell<bool>,
    known: RefCell<BTreeMap<Pattern, Rc<FunctionMap>>>,
    under_way: RefCell<Vec<String>>,
}

/// The reason why a helper could not be analyzed.
pub(crate) enum Unavailable {
    /// The block has no function with that name.
    Missing,
    /// The function is already being analyzed: it calls itself, directly or indirectly.
    Recursive,
}

impl<'a> Unit<'a> {
    pub(crate) fn new(functions: Functions<'a>, trusted: Vec<String>, faults: Faults) -> Self {
        Unit {
            functions,
            trusted,
            faults,
            arena: Arena::default(),
            written: BTreeMap::new(),
            reads: RefCell::default(),
            boxes: OnceCell::new(),
            known: RefCell::default(),
            under_way: RefCell::default(),
        }
    }

    /// Adds the tokens of a function and the names in them. Printing the function would take much longer.
    pub(crate) fn add_tokens(&mut self, of: &'a ImplItemFn, tokens: &'a TokenStream, names: &'a [String]) {
        self.written.insert(Site::of(of), (tokens, names));
    }

    /// Returns the tokens of a function.
    pub(crate) fn tokens(&self, of: &ImplItemFn) -> TokenStream {
        self.written.get(&Site::of(of)).map_or_else(|| of.to_token_stream(), |written| written.0.clone())
    }

    /// Returns every name in a function, with repetitions.
    pub(crate) fn names<'o>(&'o self, of: &ImplItemFn, once: &'o Once) -> &'o [String] {
        match self.written.get(&Site::of(of)) {
            Some(written) => written.1,
            None => once.mentioned.get_or_init(|| {
                let mut mentioned = vec![];
                names(of.to_token_stream(), &mut mentioned);
                mentioned
            }),
        }
    }

    /// Returns the findings, in the tokens of an expression, about the views that it may yield. The expression is part
    /// of a function under analysis or of the arena.
    pub(crate) fn read(&self, e: &Expr) -> Rc<Read> {
        let mut known = self.reads.borrow_mut();
        known.entry(Site::of(e)).or_insert_with(|| Rc::new(Read::of(e))).clone()
    }

    /// Returns the first version of a function.
    pub(crate) fn function(&self, name: &str) -> Option<&'a ImplItemFn> {
        self.versions(name).first().copied()
    }

    /// Returns all versions of a function. The compiler keeps one of them, and an attribute macro cannot know
    /// which.
    pub(crate) fn versions(&self, name: &str) -> &[&'a ImplItemFn] {
        self.functions.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of the functions that have type parameters.
    pub(crate) fn generic(&self) -> Vec<String> {
        let generic = |f: &&ImplItemFn| f.sig.generics.type_params().next().is_some();
        self.functions.iter().filter(|(_, f)| f.iter().any(generic)).map(|(name, _)| name.clone()).collect()
    }

    /// Checks whether any of the block's functions returns something boxed.
    pub(crate) fn returns_boxes(&self) -> bool {
        let boxed = |f: &&ImplItemFn| find_name(f.sig.output.to_token_stream(), "Box").is_some();
        *self.boxes.get_or_init(|| self.functions.values().flatten().any(boxed))
    }

    /// Returns the result for every function called by a handler.
    pub(crate) fn helpers(&self) -> Vec<Rc<FunctionMap>> {
        self.known.borrow().values().cloned().collect()
    }

    /// Analyzes all versions of a helper for one pattern of parameters that depend on state.
    pub(crate) fn helper(&self, name: &str, mask: &[bool]) -> Result<Vec<Rc<FunctionMap>>, Unavailable> {
        let versions = match self.faults.has(Fault::OtherVersionsIgnored) {
            true => self.versions(name).len().min(1),
            false => self.versions(name).len(),
        };
        (0..versions).map(|version| self.version(name, version, mask)).collect()
    }

    /// Analyzes one version of a helper. The result is cached.
    fn version(&self, name: &str, version: usize, mask: &[bool]) -> Result<Rc<FunctionMap>, Unavailable> {
        let key = (name.to_string(), version, mask.to_vec());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }

        let item = *self.versions(name).get(version).ok_or(Unavailable::Missing)?;
        if self.under_way.borrow().iter().any(|s| s == name) {
            return Err(Unavailable::Recursive);
        }

        let map = Rc::new(FunctionMap { version, ..self.fixpoint(item, mask, false) });
        self.known.borrow_mut().insert(key, map.clone());
        Ok(map)
    }

    /// Analyzes a handler. All its parameters depend only on the message.
    pub(crate) fn handler(&self, item: &ImplItemFn) -> FunctionMap {
        self.fixpoint(item, &[], true)
    }

    fn fixpoint(&self, item: &ImplItemFn, mask: &[bool], handler: bool) -> FunctionMap {
        self.under_way.borrow_mut().push(item.sig.ident.to_string());
        let once = Once::default();
        let (map, undecided) = self.rounds(item, mask, handler, &once, false);
        // only a function that would be refused needs this; if it still is, these errors show less that is no mistake
        let followed = (!map.errors.is_empty() && undecided)
            .then(|| self.rounds(item, mask, handler, &once, true).0)
            .filter(|followed| followed.errors.len() <= map.errors.len());
        self.under_way.borrow_mut().pop();
        followed.unwrap_or(map)
    }

    /// Analyzes a function in rounds. Also returns whether state decides the control flow of a part of it.
    fn rounds(
        &self,
        item: &ImplItemFn,
        mask: &[bool],
        handler: bool,
        once: &Once,
        follows_stops: bool,
    ) -> (FunctionMap, bool) {
        let mut facts = Facts { follows_stops, ..Facts::default() };
        let ignores = self.faults.has(Fault::LateFactsIgnored);
        let mut only_learns = !ignores && changes_in_loops(self.names(item, once));
        let map = loop {
            let mut pass = Pass::new(self, item, once, &facts, only_learns);
            let map = pass.function(mask, handler);
            let learned = pass.into_learned();
            if (learned.is_empty() || ignores) && !only_learns {
                break map;
            }

            facts.absorb(learned);
            only_learns = false;
        };

        (map, !facts.undecided.is_empty())
    }
}

/// Guesses from the names in a function whether its first round will learn facts and a second round will be needed:
/// whether it has a loop after the declaration of a local that can change.
fn changes_in_loops(names: &[String]) -> bool {
    let mut after = names.windows(2).skip_while(|pair| pair[0] != "let" || pair[1] != "mut");
    after.any(|pair| matches!(pair[1].as_str(), "for" | "loop" | "while"))
}
