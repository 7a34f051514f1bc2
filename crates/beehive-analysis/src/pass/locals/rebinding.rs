//! Macros that may rebind a name: as a statement, a macro that Beehive cannot see into may expand to a `let` of a name
//! that is passed to it. After the statement, the name denotes a different local, until the block ends.

use super::scope::{Alias, Kind, Known};
use super::views::Views;
use crate::node::{Assumption, Node};
use crate::pass::Pass;
use crate::rewrite::attempts::is_labeled;
use crate::rewrite::rebinding::{macro_statements, only_reads_fields};
use crate::value::{Site, Taint, Value, VariableId, Variables};
use syn::Macro;

impl Pass<'_, '_> {
    /// Declares the local that a name denotes after a macro statement, which may differ from the one it denoted before.
    ///
    /// If only fields of a borrowed parameter are passed to the macro, the macro could do nothing else to the
    /// parameter, and the compiler can check that it does not bind the name. The map then assumes that the name keeps
    /// its meaning.
    pub(in crate::pass) fn rebound(&mut self, id: VariableId, m: &Macro, taint: Taint, out: &mut Vec<Node>) {
        if !matches!(self.variable(id).kind, Kind::Known(_)) {
            return;
        }

        let (name, owner) = (self.variable(id).name.clone(), self.variable(id).owner);
        let assumed = self.assumed(id, m);
        let kind = match &assumed {
            Some((_, known, _)) => Kind::Known(known.clone()),
            None => Kind::Tainted(taint),
        };

        let mut defines = Variables::new();
        self.with_views(Views::new(), |pass| {
            pass.with_owner(owner, |pass| pass.declare(&name, Site::of(m), &kind, false, &mut defines))
        });

        let Some((statement, _, name)) = assumed else { return };
        self.borrowed.extend(&defines);
        self.assumptions.extend(defines.iter().map(|local| Assumption {
            statement,
            name: name.clone(),
            local: *local,
        }));
        let value = Value { uses: Variables::from([id]), ..Value::default() };
        out.push(Node::Let { tokens: Default::default(), defines, value });
    }

    /// Returns the number of a macro statement, the known value of a parameter whose name the compiler can watch there,
    /// and that name as it is passed to the macro.
    fn assumed(&self, id: VariableId, m: &Macro) -> Option<(usize, Known, proc_macro2::Ident)> {
        let v = self.variable(id);
        let Kind::Known(known) = &v.kind else { return None };
        if !self.borrowed.contains(&id) || self.closures > 0 || self.trust > 0 || is_labeled(self.mentions())
        {
            return None;
        }

        let watched = only_reads_fields(&m.tokens, &v.name)?;
        let statements = self.once.macro_statements.get_or_init(|| macro_statements(self.item));
        let statement = statements.iter().position(|s| *s == Site::of(m))?;
        let alias = known.alias.clone().or_else(|| {
            // keys before and after the statement are the same
            let identity = format!("{}#{id}.0", v.name);
            Some(Alias { words: v.name.clone(), identity })
        });
        Some((statement, Known { alias, ..known.clone() }, watched))
    }

    /// Checks whether a local is a parameter, under its own name or under the same name after a macro.
    pub(in crate::pass) fn is_parameter(&self, id: VariableId) -> bool {
        id < self.parameters_end || self.borrowed.contains(&id)
    }
}
