//! A sink that builds the tree of a message.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::node::Node;
use crate::error::Error;
use crate::schema::Sink;

/// A [`Sink`] that collects the values of a message as a [`Node`], and keeps the error of the first malformed
/// list.
#[derive(Default, Debug)]
pub struct Tree {
    open: Vec<Node>,
    keys: Vec<Option<String>>,
    key: Option<String>,
    root: Option<Node>,
    error: Option<Error>,
}

impl Tree {
    /// Returns the tree.
    ///
    /// # Errors
    ///
    /// Fails if a list of the message is malformed.
    pub fn finish(self) -> Result<Node, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.root.unwrap_or(Node::Nothing)),
        }
    }

    fn value(&mut self, node: Node) {
        let key = self.key.take();
        match self.open.last_mut() {
            Some(Node::Record(values)) => values.push((key.unwrap_or_default(), node)),
            Some(Node::List(values)) => values.push(node),
            _ => self.root = Some(node),
        }
    }

    fn begin(&mut self, node: Node) {
        self.keys.push(self.key.take());
        self.open.push(node);
    }

    fn end(&mut self) {
        self.key = self.keys.pop().flatten();
        if let Some(node) = self.open.pop() {
            self.value(node);
        }
    }
}

impl Sink for Tree {
    fn number(&mut self, value: u64) {
        self.value(Node::Number(value));
    }

    fn text(&mut self, value: fmt::Arguments<'_>) {
        self.value(Node::Text(value.to_string()));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.value(Node::bytes(value));
    }

    fn flag(&mut self, value: bool) {
        self.value(Node::Flag(value));
    }

    fn nothing(&mut self) {
        self.value(Node::Nothing);
    }

    fn key(&mut self, name: &str) {
        self.key = Some(name.to_owned());
    }

    fn open_record(&mut self) {
        self.begin(Node::Record(Vec::new()));
    }

    fn close_record(&mut self) {
        self.end();
    }

    fn open_list(&mut self) {
        self.begin(Node::List(Vec::new()));
    }

    fn close_list(&mut self) {
        self.end();
    }

    fn error(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
