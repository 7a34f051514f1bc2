//! Derives the owner of an app's flows from the app's name.

use crate::object::Owner;
use beehive::App;

/// The owner of an app's flows. Every app has an owner, derived from the app's name.
///
/// `beehive flows` translates owners back to app names, so an app must not use any other owner.
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive_nom::apps::LearningSwitch;
/// use beehive_nom::object::Owner;
/// use beehive_nom::parts::OwnsFlows;
///
/// // in a handler, the owner is `Self::OWNER`
/// assert_eq!(LearningSwitch::OWNER, Owner::named("learning-switch"));
/// ```
pub trait OwnsFlows {
    /// The owner of the app's flows.
    const OWNER: Owner;
}

impl<A: App> OwnsFlows for A {
    const OWNER: Owner = Owner::named(A::NAME);
}
