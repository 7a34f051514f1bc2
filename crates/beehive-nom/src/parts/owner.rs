//! Whose flows an app's are.

use crate::object::Owner;
use beehive::App;

/// The mark of an app on its flows: every app has one, made of its name.
///
/// What operators read (`beehive flows`) finds the name of an app by its mark, so there is no other one.
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive_nom::apps::LearningSwitch;
/// use beehive_nom::object::Owner;
/// use beehive_nom::parts::OwnsFlows;
///
/// // in a handler it is `Self::OWNER`
/// assert_eq!(LearningSwitch::OWNER, Owner::named("learning-switch"));
/// ```
pub trait OwnsFlows {
    /// Whose its flows are.
    const OWNER: Owner;
}

impl<A: App> OwnsFlows for A {
    const OWNER: Owner = Owner::named(A::NAME);
}
