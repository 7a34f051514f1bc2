//! Written by `cargo run -p beehive-analysis --example random_handlers -- faults`: maps from an analysis with bugs.

#![allow(warnings, clippy::all)]
use crate::message::{Load, M};
use beehive::{App, Ctx, Dict, Mapper, pure};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Numbers(AtomicU64);
impl Numbers { fn number(&self) -> u64 { self.0.fetch_add(1, Ordering::Relaxed) } }
static NUMBERS: Numbers = Numbers(AtomicU64::new(0));

/// Looks like a macro that logs, and changes its argument.
macro_rules! debug { ($($text:literal,)? $x:ident) => { $x ^= 16 }; }
macro_rules! again { ($x:ident) => { let $x = $x ^ 16; }; }
macro_rules! another { ($m:ident . $x:ident) => { let mut other = $m.clone(); other.$x ^= 16; let $m = &other; }; }

fn note(_: Option<&u64>) {}

#[derive(App)]
pub(crate) struct ElseBranchLost { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ElseBranchLost { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ElseBranchLost { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a]`."] fn h1 (& mut self , m : & M < 1 >) { if m . flag { self . d . put (m . a , 1) ; }
else { self . e . put (m . b , 1) ; }
}
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ElseBranchLost { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ElseBranchLost { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ElseBranchLost { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ElseBranchLost { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { if m . flag { :: beehive :: __private :: AtValue (Self :: __bh_d , & (m . a)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct ViewsIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ViewsIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ViewsIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.b] for x in v.iter_mut(), e[k] for k in v`. **Joins:** `e[k] for k in v; d[m.b] with e[k]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut v = vec ! [m . a] ; for x in v . iter_mut () { * x += self . d . get (& m . b) . copied () . unwrap_or (0) ; }
for k in v { self . e . get (& k) ; }
}
# [doc = "**Map:** sharded, `d[x] for (x, y) in m.items.iter().zip(v.iter_mut()), e[k] for k in v`. **Joins:** `d[x] for (x, y) in m.items.iter().zip(v.iter_mut()); e[k] for k in v; d[x] with e[k]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { let mut v = vec ! [m . a] ; for (x , y) in m . items . iter () . zip (v . iter_mut ()) { * y = * x + self . d . get (x) . copied () . unwrap_or (0) ; }
for k in v { self . e . get (& k) ; }
}
}
const _ : () = { # [deprecated (note = "a message joins e[k] for k in v; d[m.b] with e[k] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [deprecated (note = "a message joins d[x] for (x, y) in m.items.iter().zip(v.iter_mut()); e[k] for k in v; d[x] with e[k] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (warnings , clippy :: all , clippy :: pedantic)] fn __macros () { use :: beehive :: __private :: macros :: * ; let _ = || { let _ : :: std :: vec :: Vec < () > = vec ! [] ; }
; }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ViewsIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ViewsIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.b] for x in v.iter_mut(), e[k] for k in v" , joins : "e[k] for k in v; d[m.b] with e[k]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[x] for (x, y) in m.items.iter().zip(v.iter_mut()), e[k] for k in v" , joins : "d[x] for (x, y) in m.items.iter().zip(v.iter_mut()); e[k] for k in v; d[x] with e[k]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ViewsIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ViewsIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = vec ! [m . a] ; for x in v . iter_mut () { __m . step () ; :: beehive :: __private :: At (Self :: __bh_d , & (& m . b)) . cell (__m) ; }
for k in v { __m . step () ; :: beehive :: __private :: At (Self :: __bh_e , & (& k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for ViewsIgnored { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = vec ! [m . a] ; for (x , y) in m . items . iter () . zip (v . iter_mut ()) { __m . step () ; :: beehive :: __private :: At (Self :: __bh_d , & (x)) . cell (__m) ; }
for k in v { __m . step () ; :: beehive :: __private :: At (Self :: __bh_e , & (& k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct AssignmentsUnderStateIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl AssignmentsUnderStateIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl AssignmentsUnderStateIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a], e[k]`. **Joins:** `d[m.a] with e[k]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut k = m . a ; if self . d . contains (& m . a) { k = m . b + 20 ; }
self . e . put (k , 1) ; }
}
const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[k] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl AssignmentsUnderStateIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for AssignmentsUnderStateIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[k]" , joins : "d[m.a] with e[k]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for AssignmentsUnderStateIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for AssignmentsUnderStateIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut k = m . a ; :: beehive :: __private :: At (Self :: __bh_d , & (& m . a)) . cell (__m) ; __m . branch (| __m | { k = m . b + 20 ; }) ; :: beehive :: __private :: AtValue (Self :: __bh_e , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct ExitsLeaveTheWholeMap { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ExitsLeaveTheWholeMap { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ExitsLeaveTheWholeMap { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a], e[m.b]`. **Joins:** `d[m.a] with e[m.b]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { if self . d . contains (& m . a) { return ; }
self . e . put (m . b , 1) ; }
# [doc = "**Map:** sharded, `d[x] for x in m.items, e[x] for x in m.items`. **Joins:** `d[x] for x in m.items; e[x] for x in m.items`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { for x in & m . items { if self . d . contains (x) { if * x > m . b { return ; }
}
self . e . put (* x , 1) ; }
}
}
const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[m.b] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [deprecated (note = "a message joins d[x] for x in m.items; e[x] for x in m.items permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ExitsLeaveTheWholeMap { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ExitsLeaveTheWholeMap { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[m.b]" , joins : "d[m.a] with e[m.b]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[x] for x in m.items, e[x] for x in m.items" , joins : "d[x] for x in m.items; e[x] for x in m.items" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ExitsLeaveTheWholeMap { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ExitsLeaveTheWholeMap { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { :: beehive :: __private :: At (Self :: __bh_d , & (& m . a)) . cell (__m) ; '__bh1 : { return ; }
:: beehive :: __private :: AtValue (Self :: __bh_e , & (m . b)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for ExitsLeaveTheWholeMap { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { for x in & m . items { __m . step () ; :: beehive :: __private :: At (Self :: __bh_d , & (x)) . cell (__m) ; '__bh1 : { if * x > m . b { return ; }
}
:: beehive :: __private :: AtValue (Self :: __bh_e , & (* x)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct JumpsUnderStateIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl JumpsUnderStateIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl JumpsUnderStateIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[x] for x in m.items, e[n]`. **Joins:** `d[x] for x in m.items; d[x] with e[n]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut n = 0 ; for x in & m . items { if self . d . contains (x) { break ; }
n += 1 ; }
self . e . put (n , 1) ; }
}
const _ : () = { # [deprecated (note = "a message joins d[x] for x in m.items; d[x] with e[n] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl JumpsUnderStateIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for JumpsUnderStateIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[x] for x in m.items, e[n]" , joins : "d[x] for x in m.items; d[x] with e[n]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for JumpsUnderStateIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for JumpsUnderStateIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut n = 0 ; for x in & m . items { __m . step () ; :: beehive :: __private :: At (Self :: __bh_d , & (x)) . cell (__m) ; { break ; }
n += 1 ; }
:: beehive :: __private :: AtValue (Self :: __bh_e , & (n)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct LoopBodyLost { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl LoopBodyLost { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl LoopBodyLost { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** drop."] fn h1 (& mut self , m : & M < 1 >) { for x in & m . items { self . d . put (* x , 1) ; }
}
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl LoopBodyLost { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for LoopBodyLost { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "drop" , cells : "-" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for LoopBodyLost { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for LoopBodyLost { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct DroppedChangesIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl DroppedChangesIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl DroppedChangesIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a], e[k]`. **Joins:** `d[m.a] with e[k]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut it = m . items . iter () ; self . d . put (m . a , it . next () . copied () . unwrap_or (0)) ; if let Some (k) = it . next () { self . e . get (k) ; }
}
# [doc = "**Map:** sharded, `e[k]`."] fn h2 (& mut self , m : & M < 2 >) { let mut it = m . items . iter () ; note (it . next ()) ; if let Some (k) = it . next () { self . e . get (k) ; }
}
}
const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[k] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl DroppedChangesIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for DroppedChangesIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[k]" , joins : "d[m.a] with e[k]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "e[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for DroppedChangesIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for DroppedChangesIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut it = m . items . iter () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (m . a)) . cell (__m) ; if let Some (k) = it . next () { :: beehive :: __private :: At (Self :: __bh_e , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for DroppedChangesIgnored { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut it = m . items . iter () ; __m . effect () ; if let Some (k) = it . next () { :: beehive :: __private :: At (Self :: __bh_e , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct TemporariesAreFixed { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl TemporariesAreFixed { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl TemporariesAreFixed { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[[m.b, m.a][0]]`."] fn h1 (& mut self , m : & M < 1 >) { let e = & mut [m . b , m . a] ; e . sort () ; self . d . put (e [0] , 1) ; }
# [doc = "**Map:** sharded, `d[k]`."] fn h2 (& mut self , m : & M < 2 >) { let it = & mut m . items . iter () ; it . next () ; if let Some (k) = it . next () { self . d . put (* k , 1) ; }
}
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl TemporariesAreFixed { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for TemporariesAreFixed { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[[m.b, m.a][0]]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for TemporariesAreFixed { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for TemporariesAreFixed { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let e = & mut [m . b , m . a] ; __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (e [0])) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for TemporariesAreFixed { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let it = & mut m . items . iter () ; __m . effect () ; if let Some (k) = it . next () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (* k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct ClosuresChangeNothing { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ClosuresChangeNothing { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ClosuresChangeNothing { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k] for k in v`. **Joins:** `d[k] for k in v`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut v = vec ! [] ; let mut add = | k : u64 | v . push (k) ; add (m . a) ; add (m . b) ; for k in v { self . d . put (k , 1) ; }
}
# [doc = "**Map:** sharded, `d[next()]`."] fn h2 (& mut self , m : & M < 2 >) { let mut n = m . a ; let mut next = || { n += 1 ; n }
; next () ; self . d . put (next () , 1) ; }
}
const _ : () = { # [deprecated (note = "a message joins d[k] for k in v permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (warnings , clippy :: all , clippy :: pedantic)] fn __macros () { use :: beehive :: __private :: macros :: * ; let _ = || { let _ : :: std :: vec :: Vec < () > = vec ! [] ; }
; }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ClosuresChangeNothing { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ClosuresChangeNothing { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k] for k in v" , joins : "d[k] for k in v" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[next()]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ClosuresChangeNothing { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ClosuresChangeNothing { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = vec ! [] ; let mut add = | k : u64 | v . push (k) ; __m . effect () ; for k in v { __m . step () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for ClosuresChangeNothing { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut n = m . a ; let mut next = | | { n += 1 ; n }
; __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (next ())) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct MethodsOnlyRead { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl MethodsOnlyRead { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl MethodsOnlyRead { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h1 (& mut self , m : & M < 1 >) { let mut v = m . items . clone () ; v . reverse () ; if let Some (k) = v . first () { self . d . put (* k , 1) ; }
}
# [doc = "**Map:** sharded, `d[m.b], e[k] for k in v`. **Joins:** `e[k] for k in v; d[m.b] with e[k]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { let mut v = vec ! [m . a] ; if self . d . contains (& m . b) { v . push (m . b + 20) ; }
for k in v { self . e . put (k , 1) ; }
}
}
const _ : () = { # [deprecated (note = "a message joins e[k] for k in v; d[m.b] with e[k] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (warnings , clippy :: all , clippy :: pedantic)] fn __macros () { use :: beehive :: __private :: macros :: * ; let _ = || { let _ : :: std :: vec :: Vec < () > = vec ! [] ; }
; }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl MethodsOnlyRead { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for MethodsOnlyRead { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[m.b], e[k] for k in v" , joins : "e[k] for k in v; d[m.b] with e[k]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for MethodsOnlyRead { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for MethodsOnlyRead { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = m . items . clone () ; __m . effect () ; if let Some (k) = v . first () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (* k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for MethodsOnlyRead { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = vec ! [m . a] ; :: beehive :: __private :: At (Self :: __bh_d , & (& m . b)) . cell (__m) ; for k in v { __m . step () ; :: beehive :: __private :: AtValue (Self :: __bh_e , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct StaticsAreFixed { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl StaticsAreFixed { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl StaticsAreFixed { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** centralized, `d[COUNT.fetch_add(1, Ordering::Relaxed)]`. **Why:** the key of `d[COUNT.fetch_add(1, Ordering::Relaxed)]` (line 1) is the same for every message. **Note:** give every message a key of its own, or, if a single bee is intended, write `#[rcv(centralized)]`."] fn h1 (& mut self , m : & M < 1 >) { let k = COUNT . fetch_add (1 , Ordering :: Relaxed) ; self . d . put (k , 1) ; }
}
const _ : () = { # [deprecated (note = "the key of `d[COUNT.fetch_add(1, Ordering::Relaxed)]` (line 1) is the same for every message, so one bee gets all of these messages; if that is intended, write #[rcv(centralized)] (more: beehive::guide::errors::centralized)")] # [allow (non_upper_case_globals)] const h1_is_centralized : () = () ; let () = h1_is_centralized ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl StaticsAreFixed { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for StaticsAreFixed { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "centralized" , cells : "d[COUNT.fetch_add(1, Ordering::Relaxed)]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "the key of `d[COUNT.fetch_add(1, Ordering::Relaxed)]` (line 1) is the same for every message" , reason_line : 1u32 , note : "give every message a key of its own, or, if a single bee is intended, write #[rcv(centralized)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for StaticsAreFixed { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for StaticsAreFixed { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let k = COUNT . fetch_add (1 , Ordering :: Relaxed) ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct PanicsEndTheMap { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl PanicsEndTheMap { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl PanicsEndTheMap { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a], e[m.items[3]], e[m.b]`. **Joins:** `d[m.a] with e[m.items[3]]; d[m.a] with e[m.b]; e[m.items[3]] with e[m.b]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { if self . d . contains (& m . a) { self . e . put (m . items [3] , 1) ; }
self . e . put (m . b , 1) ; }
}
const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[m.items[3]]; d[m.a] with e[m.b]; e[m.items[3]] with e[m.b] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl PanicsEndTheMap { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for PanicsEndTheMap { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[m.items[3]], e[m.b]" , joins : "d[m.a] with e[m.items[3]]; d[m.a] with e[m.b]; e[m.items[3]] with e[m.b]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for PanicsEndTheMap { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for PanicsEndTheMap { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { :: beehive :: __private :: At (Self :: __bh_d , & (& m . a)) . cell (__m) ; { :: beehive :: __private :: AtValue (Self :: __bh_e , & (m . items [3])) . cell (__m) ; }
:: beehive :: __private :: AtValue (Self :: __bh_e , & (m . b)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct OtherVersionsIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl OtherVersionsIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl OtherVersionsIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a]`."] fn h1 (& mut self , m : & M < 1 >) { self . visit (m . a) ; }
# [cfg (any ())] fn visit (& mut self , x : u64) { self . d . put (x , 1) ; }
# [cfg (not (any ()))] fn visit (& mut self , x : u64) { self . e . put (x , 1) ; }
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_visit : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl OtherVersionsIgnored { # [doc (hidden)] # [allow (warnings , clippy :: all , clippy :: pedantic)] # [cfg (any ())] fn __bh_map_visit_m < > (x : u64 , __m : & mut :: beehive :: __private :: Mapper) { :: beehive :: __private :: AtValue (Self :: __bh_d , & (x)) . cell (__m) ; }
}
# [automatically_derived] impl :: beehive :: __private :: Handlers for OtherVersionsIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for OtherVersionsIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for OtherVersionsIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { # [cfg (any ())] Self :: __bh_map_visit_m (m . a , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct HashOrderIsFixed { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl HashOrderIsFixed { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl HashOrderIsFixed { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k] for k in m.items.iter().copied().collect().into_iter().take(1)`. **Joins:** `d[k] for k in m.items.iter().copied().collect().into_iter().take(1)`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let s : std :: collections :: HashSet < u64 > = m . items . iter () . copied () . collect () ; for k in s . into_iter () . take (1) { self . d . put (k , 1) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h2 (& mut self , m : & M < 2 >) { let mut v = m . items . iter () . copied () . collect ::< std :: collections :: HashSet < u64 >> () . into_iter () . collect ::< Vec < u64 >> () ; if let Some (k) = v . pop () { self . d . put (k , 1) ; }
}
}
const _ : () = { # [deprecated (note = "a message joins d[k] for k in m.items.iter().copied().collect().into_iter().take(1) permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl HashOrderIsFixed { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for HashOrderIsFixed { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k] for k in m.items.iter().copied().collect().into_iter().take(1)" , joins : "d[k] for k in m.items.iter().copied().collect().into_iter().take(1)" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for HashOrderIsFixed { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for HashOrderIsFixed { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let s : std :: collections :: HashSet < u64 > = m . items . iter () . copied () . collect () ; for k in s . into_iter () . take (1) { __m . step () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for HashOrderIsFixed { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = m . items . iter () . copied () . collect :: < std :: collections :: HashSet < u64 > > () . into_iter () . collect :: < Vec < u64 > > () ; if let Some (k) = v . pop () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct LateFactsIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl LateFactsIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl LateFactsIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `e[k] for q in m.items, d[q] for q in m.items`. **Joins:** `d[q] for q in m.items; e[k] with d[q]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { let mut k = m . a ; for q in & m . items { self . e . put (k , 1) ; if self . d . contains (q) { k = q + 20 ; }
}
}
# [doc = "**Map:** sharded, `e[n] for q in m.items, d[q] for q in m.items`. **Joins:** `e[n] for q in m.items; d[q] for q in m.items; e[n] with d[q]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { let mut n = 0 ; for q in & m . items { n += 1 ; self . e . put (n , 1) ; if self . d . contains (q) { n += 20 ; }
}
}
}
const _ : () = { # [deprecated (note = "a message joins d[q] for q in m.items; e[k] with d[q] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [deprecated (note = "a message joins e[n] for q in m.items; d[q] for q in m.items; e[n] with d[q] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl LateFactsIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for LateFactsIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "e[k] for q in m.items, d[q] for q in m.items" , joins : "d[q] for q in m.items; e[k] with d[q]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "e[n] for q in m.items, d[q] for q in m.items" , joins : "e[n] for q in m.items; d[q] for q in m.items; e[n] with d[q]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for LateFactsIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for LateFactsIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut k = m . a ; for q in & m . items { __m . step () ; :: beehive :: __private :: AtValue (Self :: __bh_e , & (k)) . cell (__m) ; :: beehive :: __private :: At (Self :: __bh_d , & (q)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for LateFactsIgnored { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut n = 0 ; for q in & m . items { __m . step () ; n += 1 ; :: beehive :: __private :: AtValue (Self :: __bh_e , & (n)) . cell (__m) ; :: beehive :: __private :: At (Self :: __bh_d , & (q)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct ReturnedViewsIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ReturnedViewsIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ReturnedViewsIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[v[0]]`."] fn h1 (& mut self , m : & M < 1 >) { let mut v = vec ! [m . b , m . a] ; let r = std :: convert :: identity (& mut v) ; r . sort () ; self . d . put (v [0] , 1) ; }
# [doc = "**Map:** sharded, `d[n]`."] fn h2 (& mut self , m : & M < 2 >) { let mut n = m . a ; let r = Self :: own (& mut n) ; * r ^= 16 ; self . d . put (n , 1) ; }
fn own < T > (r : & mut T) -> & mut T { r }
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (warnings , clippy :: all , clippy :: pedantic)] fn __macros () { use :: beehive :: __private :: macros :: * ; let _ = || { let _ : :: std :: vec :: Vec < () > = vec ! [] ; }
; }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ReturnedViewsIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ReturnedViewsIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[v[0]]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[n]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ReturnedViewsIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ReturnedViewsIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = vec ! [m . b , m . a] ; let r = std :: convert :: identity (& mut v) ; __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (v [0])) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for ReturnedViewsIgnored { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut n = m . a ; let r = Self :: own (& mut n) ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (n)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct ResultsHideChanges { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl ResultsHideChanges { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl ResultsHideChanges { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a]`."] fn h1 (& mut self , m : & M < 1 >) { let mut q = m . opt ; let _old = q . take () ; if q . is_none () { self . d . put (m . a , 1) ; }
}
# [doc = "**Map:** sharded, `d[m.a]`."] fn h2 (& mut self , m : & M < 2 >) { let mut v = m . items . clone () ; let _last = v . pop () ; if v . is_empty () { self . d . put (m . a , 1) ; }
}
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl ResultsHideChanges { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for ResultsHideChanges { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for ResultsHideChanges { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for ResultsHideChanges { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut q = m . opt ; if q . is_none () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (m . a)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for ResultsHideChanges { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = m . items . clone () ; if v . is_empty () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (m . a)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct PromisesHideChanges { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl PromisesHideChanges { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl PromisesHideChanges { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h1 (& mut self , m : & M < 1 >) { let mut v = m . items . clone () ; pure ! (v . reverse ()) ; if let Some (k) = v . first () { self . d . put (* k , 1) ; }
}
# [doc = "**Map:** sharded, `d[v[0]]`."] fn h2 (& mut self , m : & M < 2 >) { let mut v = [m . b , m . a] ; pure ! (v . swap (0 , 1)) ; self . d . put (v [0] , 1) ; }
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (warnings , clippy :: all , clippy :: pedantic)] fn __macros () { use :: beehive :: __private :: macros :: * ; let _ = || { pure ! (()) ; }
; }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl PromisesHideChanges { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for PromisesHideChanges { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[v[0]]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for PromisesHideChanges { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for PromisesHideChanges { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = m . items . clone () ; if let Some (k) = v . first () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (* k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for PromisesHideChanges { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut v = [m . b , m . a] ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (v [0])) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct HiddenHashesIgnored { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl HiddenHashesIgnored { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl HiddenHashesIgnored { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h1 (& mut self , m : & M < 1 >) { struct Own { all : std :: collections :: HashSet < u64 > }
let own = Own { all : m . items . iter () . copied () . collect () }
; if let Some (k) = own . all . iter () . next () { self . d . put (* k , 1) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h2 (& mut self , m : & M < 2 >) { let mut all : std :: collections :: HashMap < u64 , std :: collections :: HashSet < u64 >> = Default :: default () ; all . insert (m . a , m . items . iter () . copied () . collect ()) ; if let Some (k) = all . get (& m . a) . and_then (| s | s . iter () . next ()) { self . d . put (* k , 1) ; }
}
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl HiddenHashesIgnored { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for HiddenHashesIgnored { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for HiddenHashesIgnored { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for HiddenHashesIgnored { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { struct Own { all : std :: collections :: HashSet < u64 > }
let own = Own { all : m . items . iter () . copied () . collect () }
; if let Some (k) = own . all . iter () . next () { :: beehive :: __private :: AtValue (Self :: __bh_d , & (* k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for HiddenHashesIgnored { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut all : std :: collections :: HashMap < u64 , std :: collections :: HashSet < u64 > > = Default :: default () ; __m . effect () ; all . insert (m . a , m . items . iter () . copied () . collect ()) ; if let Some (k) = all . get (& m . a) . and_then (| s | s . iter () . next ()) { :: beehive :: __private :: AtValue (Self :: __bh_d , & (* k)) . cell (__m) ; }
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct GlobalsAreData { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl GlobalsAreData { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl GlobalsAreData { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** centralized, `d[NUMBERS.number()]`. **Why:** the key of `d[NUMBERS.number()]` (line 1) is the same for every message. **Note:** give every message a key of its own, or, if a single bee is intended, write `#[rcv(centralized)]`."] fn h1 (& mut self , m : & M < 1 >) { let k = NUMBERS . number () ; self . d . put (k , 1) ; }
# [doc = "**Map:** sharded, `d[NUMBERS.number() ^ m.a]`."] fn h2 (& mut self , m : & M < 2 >) { let numbers = & NUMBERS ; let k = numbers . number () ^ m . a ; self . d . put (k , 1) ; }
}
const _ : () = { # [deprecated (note = "the key of `d[NUMBERS.number()]` (line 1) is the same for every message, so one bee gets all of these messages; if that is intended, write #[rcv(centralized)] (more: beehive::guide::errors::centralized)")] # [allow (non_upper_case_globals)] const h1_is_centralized : () = () ; let () = h1_is_centralized ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl GlobalsAreData { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for GlobalsAreData { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "centralized" , cells : "d[NUMBERS.number()]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "the key of `d[NUMBERS.number()]` (line 1) is the same for every message" , reason_line : 1u32 , note : "give every message a key of its own, or, if a single bee is intended, write #[rcv(centralized)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[NUMBERS.number() ^ m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for GlobalsAreData { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for GlobalsAreData { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let k = NUMBERS . number () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for GlobalsAreData { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let numbers = & NUMBERS ; let k = numbers . number () ^ m . a ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct GuessedMacrosOnlyLog { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl GuessedMacrosOnlyLog { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl GuessedMacrosOnlyLog { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[k]`."] fn h1 (& mut self , m : & M < 1 >) { let mut k = m . a ; debug ! ("{}" , k) ; self . d . put (k , 1) ; }
# [doc = "**Map:** sharded, `e[k]`."] fn h2 (& mut self , m : & M < 2 >) { let mut k = m . a ; if m . flag { debug ! ("{}" , k) ; }
self . e . put (k , 1) ; }
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl GuessedMacrosOnlyLog { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for GuessedMacrosOnlyLog { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "e[k]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for GuessedMacrosOnlyLog { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for GuessedMacrosOnlyLog { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let mut k = m . a ; __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for GuessedMacrosOnlyLog { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { let mut k = m . a ; if m . flag { __m . effect () ; }
:: beehive :: __private :: AtValue (Self :: __bh_e , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct MacrosRebindNothing { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl MacrosRebindNothing { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl MacrosRebindNothing { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a]`."] fn h1 (& mut self , m : & M < 1 >) { let k = m . a ; again ! (k) ; self . d . put (k , 1) ; }
# [doc = "**Map:** sharded, `d[m.a]`."] fn h2 (& mut self , m : & M < 2 >) { another ! (m . a) ; self . d . put (m . a , 1) ; }
}
const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl MacrosRebindNothing { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for MacrosRebindNothing { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[m.a]" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for MacrosRebindNothing { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for MacrosRebindNothing { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { let k = m . a ; __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for MacrosRebindNothing { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { __m . effect () ; :: beehive :: __private :: AtValue (Self :: __bh_d , & (m . a)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct MethodsCannotPanic { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl MethodsCannotPanic { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl MethodsCannotPanic { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** sharded, `d[m.a], e[m.opt.unwrap()], e[m.b]`. **Joins:** `d[m.a] with e[m.opt.unwrap()]; d[m.a] with e[m.b]; e[m.opt.unwrap()] with e[m.b]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h1 (& mut self , m : & M < 1 >) { if self . d . contains (& m . a) { self . e . put (m . opt . unwrap () , 1) ; }
self . e . put (m . b , 1) ; }
# [doc = "**Map:** sharded, `d[m.a], e[m.name.parse:: < u64 > ().expect(\"a number\")], d[m.b]`. **Joins:** `d[m.a] with e[m.name.parse:: < u64 > ().expect(\"a number\")]; d[m.a] with d[m.b]; e[m.name.parse:: < u64 > ().expect(\"a number\")] with d[m.b]`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { if self . d . contains (& m . a) { self . e . put (m . name . parse ::< u64 > () . expect ("a number") , 1) ; }
self . d . put (m . b , 1) ; }
}
const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[m.opt.unwrap()]; d[m.a] with e[m.b]; e[m.opt.unwrap()] with e[m.b] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h1_joins_cells : () = () ; let () = h1_joins_cells ; }
; const _ : () = { # [deprecated (note = "a message joins d[m.a] with e[m.name.parse:: < u64 > ().expect(\"a number\")]; d[m.a] with d[m.b]; e[m.name.parse:: < u64 > ().expect(\"a number\")] with d[m.b] permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl MethodsCannotPanic { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for MethodsCannotPanic { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[m.opt.unwrap()], e[m.b]" , joins : "d[m.a] with e[m.opt.unwrap()]; d[m.a] with e[m.b]; e[m.opt.unwrap()] with e[m.b]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "d[m.a], e[m.name.parse:: < u64 > ().expect(\"a number\")], d[m.b]" , joins : "d[m.a] with e[m.name.parse:: < u64 > ().expect(\"a number\")]; d[m.a] with d[m.b]; e[m.name.parse:: < u64 > ().expect(\"a number\")] with d[m.b]" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for MethodsCannotPanic { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for MethodsCannotPanic { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { :: beehive :: __private :: At (Self :: __bh_d , & (& m . a)) . cell (__m) ; { :: beehive :: __private :: AtValue (Self :: __bh_e , & (m . opt . unwrap ())) . cell (__m) ; }
:: beehive :: __private :: AtValue (Self :: __bh_e , & (m . b)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for MethodsCannotPanic { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { :: beehive :: __private :: At (Self :: __bh_d , & (& m . a)) . cell (__m) ; { :: beehive :: __private :: AtValue (Self :: __bh_e , & (m . name . parse :: < u64 > () . expect ("a number"))) . cell (__m) ; }
:: beehive :: __private :: AtValue (Self :: __bh_d , & (m . b)) . cell (__m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;

#[derive(App)]
pub(crate) struct EndlessLoopsAreAllowed { d: Dict<u64, u64>, e: Dict<u64, u64> }
impl EndlessLoopsAreAllowed { fn load_map(m: &Load, cells: &mut Mapper) {
for (k, _) in &m.d { cells.cell(Self::__bh_d, k); } for (k, _) in &m.e { cells.cell(Self::__bh_e, k); }
} }
impl EndlessLoopsAreAllowed { # [doc = "**Map:** by `Self::load_map`."] fn load (& mut self , m : & Load) { for (k , v) in & m . d { self . d . put (* k , * v) ; }
for (k , v) in & m . e { self . e . put (* k , * v) ; }
}
# [doc = "**Map:** centralized, `d[k] for k in 2u64..`. **Why:** the key of `d[k]` (line 1) is the same for every message. **Joins:** `d[k] for k in 2u64..`. **Note:** give every message a key of its own, or, if a single bee is intended, write `#[rcv(centralized)]`."] fn h1 (& mut self , m : & M < 1 >) { for k in 2u64 .. { if self . d . contains (& k) { continue ; }
self . d . put (k , 1) ; break ; }
}
# [doc = "**Map:** sharded, `e[k] for k in std::iter::successors(Some(m.a), |k |Some(k + 1))`. **Joins:** `e[k] for k in std::iter::successors(Some(m.a), |k |Some(k + 1))`. **Note:** touch only one key in each handler: send the other key in a separate message, or write `#[rcv(joins)]`."] fn h2 (& mut self , m : & M < 2 >) { for k in std :: iter :: successors (Some (m . a) , | k | Some (k + 1)) { if ! self . e . contains (& k) { self . e . put (k , 1) ; break ; }
}
}
}
const _ : () = { # [deprecated (note = "the key of `d[k]` (line 1) is the same for every message, so one bee gets all of these messages; if that is intended, write #[rcv(centralized)] (more: beehive::guide::errors::centralized)")] # [allow (non_upper_case_globals)] const h1_is_centralized : () = () ; let () = h1_is_centralized ; }
; const _ : () = { # [deprecated (note = "a message joins e[k] for k in std::iter::successors(Some(m.a), |k |Some(k + 1)) permanently, so one bee may end up owning them all; send a message for the other key instead, or, if that is intended, write #[rcv(joins)] (more: beehive::guide::errors::joins)")] # [allow (non_upper_case_globals)] const h2_joins_cells : () = () ; let () = h2_joins_cells ; }
; const _ : () = { # [allow (non_upper_case_globals , dead_code)] trait __Undeclared { const __bh_d : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; const __bh_e : & 'static :: beehive :: __private :: Undeclared = :: beehive :: __private :: Undeclared :: IT ; }
impl < __T : ? Sized > __Undeclared for __T { }
# [allow (unused_imports)] use :: beehive :: __private :: { AnswerOtherwise as _ , CellOtherwise as _ , CellThrough as _ , CellThroughTwo as _ , RegistrationOtherwise as _ }
; # [automatically_derived] impl EndlessLoopsAreAllowed { }
# [automatically_derived] impl :: beehive :: __private :: Handlers for EndlessLoopsAreAllowed { const MONOLITHIC : u64 = 0 ; const SHARED : u64 = 0 ; # [allow (warnings , clippy :: all , clippy :: pedantic)] const REPORT : & 'static [:: beehive :: __private :: HandlerReport] = { & [:: beehive :: __private :: HandlerReport { name : "load" , message : "Load" , answer : "" , kind : "custom" , cells : "by `Self::load_map`" , joins : "" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "" }
, :: beehive :: __private :: HandlerReport { name : "h1" , message : "M < 1 > " , answer : "" , kind : "centralized" , cells : "d[k] for k in 2u64.." , joins : "d[k] for k in 2u64.." , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "the key of `d[k]` (line 1) is the same for every message" , reason_line : 1u32 , note : "give every message a key of its own, or, if a single bee is intended, write #[rcv(centralized)]" }
, :: beehive :: __private :: HandlerReport { name : "h2" , message : "M < 2 > " , answer : "" , kind : "sharded" , cells : "e[k] for k in std::iter::successors(Some(m.a), |k |Some(k + 1))" , joins : "e[k] for k in std::iter::successors(Some(m.a), |k |Some(k + 1))" , views : "" , file : :: core :: file ! () , line : 1u32 , reason : "" , reason_line : 0u32 , note : "touch only one key in each handler: send the other key in a separate message, or write #[rcv(joins)]" }] }
; # [allow (unused_variables)] fn register (registrar : & mut :: beehive :: __private :: Registrar < Self >) { :: beehive :: __private :: Registration :: < Self , () , Load > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 1 > > :: of (registrar) . rcv () ; :: beehive :: __private :: Registration :: < Self , () , M < 2 > > :: of (registrar) . rcv () ; }
}
# [automatically_derived] impl :: beehive :: Handles < Load > for EndlessLoopsAreAllowed { const HANDLER : usize = 0usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (__message : & Load , __m : & mut :: beehive :: __private :: Mapper) { Self :: load_map (__message , __m) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & Load , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < Load as :: beehive :: Message > :: Reply > , < Load as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < Load as :: beehive :: Message > :: Reply , { < Load as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < Load as :: beehive :: Message > :: Reply , < Load as :: beehive :: Message > :: Error , _ > (self . load (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 1 > > for EndlessLoopsAreAllowed { const HANDLER : usize = 1usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 1 > , __m : & mut :: beehive :: __private :: Mapper) { for k in 2u64 .. { __m . step () ; '__bh1 : { :: beehive :: __private :: At (Self :: __bh_d , & (& k)) . cell (__m) ; '__bh2 : { break '__bh2 ; }
:: beehive :: __private :: AtValue (Self :: __bh_d , & (k)) . cell (__m) ; break '__bh1 ; }
}
}
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 1 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 1 > as :: beehive :: Message > :: Reply > , < M < 1 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 1 > as :: beehive :: Message > :: Reply , { < M < 1 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 1 > as :: beehive :: Message > :: Reply , < M < 1 > as :: beehive :: Message > :: Error , _ > (self . h1 (msg ,)) }
}
# [automatically_derived] impl :: beehive :: Handles < M < 2 > > for EndlessLoopsAreAllowed { const HANDLER : usize = 2usize ; const ANSWERS : bool = false ; # [allow (warnings , clippy :: all , clippy :: pedantic)] # [inline] fn map (m : & M < 2 > , __m : & mut :: beehive :: __private :: Mapper) { __m . branch (| __m | { for k in std :: iter :: successors (Some (m . a) , | k | Some (k + 1)) { __m . step () ; '__bh1 : { :: beehive :: __private :: At (Self :: __bh_e , & (& k)) . cell (__m) ; '__bh2 : { :: beehive :: __private :: AtValue (Self :: __bh_e , & (k)) . cell (__m) ; break '__bh2 ; }
}
}
}) ; }
# [allow (unused_variables)] # [inline] fn handle (& mut self , msg : & M < 2 > , ctx : & mut :: beehive :: Ctx) -> :: core :: result :: Result < :: core :: option :: Option < < M < 2 > as :: beehive :: Message > :: Reply > , < M < 2 > as :: beehive :: Message > :: Error > { # [allow (unused_imports)] use :: beehive :: __private :: NoResult as _ ; :: beehive :: __private :: ReplyCheck :: < < M < 2 > as :: beehive :: Message > :: Reply , { < M < 2 > as :: beehive :: Message > :: COMMITS_ERRORS }
, > :: check () ; :: beehive :: __private :: unanswered :: < < M < 2 > as :: beehive :: Message > :: Reply , < M < 2 > as :: beehive :: Message > :: Error , _ > (self . h2 (msg ,)) }
}
}
;
