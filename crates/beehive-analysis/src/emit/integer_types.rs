//! Tracks which integers of a function have the same type, and which of these types are known.

/// Methods of an integer, an option or an iterator whose results have a type that does not depend on the receiver's.
pub(super) const OF_OTHER_TYPE: &[&str] = &[
    "all",
    "any",
    "contains",
    "count",
    "count_ones",
    "count_zeros",
    "ilog10",
    "ilog2",
    "is_empty",
    "is_err",
    "is_negative",
    "is_none",
    "is_ok",
    "is_positive",
    "is_power_of_two",
    "is_some",
    "join",
    "leading_zeros",
    "len",
    "position",
    "trailing_zeros",
    "to_string",
];

/// A class of integers that have the same type.
pub(super) type Class = usize;

/// The type of an expression, as far as this analysis distinguishes types.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// Anything other than an integer of unknown type.
    Known,
    /// An integer whose type is not yet known.
    Open(Class),
    /// A value that holds such integers: an array, a range, an iterator or an option.
    Many(Class),
    /// Like `Many`, but its own type names a closure, so no other expression has the same type.
    Lazy(Class),
    /// A tuple; the number is the index of its parts.
    Parts(usize),
    /// The expression does not end.
    Never,
}

/// The types of a function's integers, as far as the function has been read.
#[derive(Default)]
pub(super) struct Types {
    /// For each class, a class with which it was united, or the class itself.
    united: Vec<Class>,
    known: Vec<bool>,
    pub tuples: Vec<Vec<Type>>,
}

impl Types {
    /// Checks whether the type of a class is known.
    pub(super) fn is_known(&self, class: Class) -> bool {
        self.known[self.class(class)]
    }

    /// Returns a new class.
    pub(super) fn open(&mut self) -> Class {
        self.united.push(self.united.len());
        self.known.push(false);
        self.united.len() - 1
    }

    /// Returns the class that represents all classes united with this one.
    pub(super) fn class(&self, mut class: Class) -> Class {
        while self.united[class] != class {
            class = self.united[class];
        }
        class
    }

    /// Returns this type, refined by everything read so far.
    pub(super) fn settled(&self, of: Type) -> Type {
        match of {
            Type::Open(c) | Type::Many(c) | Type::Lazy(c) if self.known[self.class(c)] => Type::Known,
            other => other,
        }
    }

    /// Records that something has a known type.
    pub(super) fn determine(&mut self, of: Type) {
        match of {
            Type::Open(c) | Type::Many(c) | Type::Lazy(c) => {
                let class = self.class(c);
                self.known[class] = true;
            }
            Type::Parts(i) => self.tuples[i].clone().into_iter().for_each(|of| self.determine(of)),
            Type::Known | Type::Never => {}
        }
    }

    fn one_class(&mut self, a: Class, b: Class) -> Class {
        let (a, b) = (self.class(a), self.class(b));
        self.united[a] = b;
        b
    }

    /// Records that two expressions have the same type, and returns that type.
    pub(super) fn unite(&mut self, a: Type, b: Type) -> Type {
        match (self.settled(a), self.settled(b)) {
            (Type::Never, other) | (other, Type::Never) => other,
            (Type::Open(a), Type::Open(b)) => Type::Open(self.one_class(a, b)),
            (Type::Many(a), Type::Many(b)) => Type::Many(self.one_class(a, b)),
            (Type::Parts(a), Type::Parts(b)) => {
                let pairs: Vec<_> = self.tuples[a].clone().into_iter().zip(self.tuples[b].clone()).collect();
                let parts = pairs.into_iter().map(|(a, b)| self.unite(a, b)).collect();
                self.tuple(parts)
            }
            (a, b) => {
                self.determine(a);
                self.determine(b);
                Type::Known
            }
        }
    }

    /// Returns the type of a tuple.
    pub(super) fn tuple(&mut self, parts: Vec<Type>) -> Type {
        if parts.iter().all(|of| *of == Type::Known) {
            return Type::Known;
        }
        self.tuples.push(parts);
        Type::Parts(self.tuples.len() - 1)
    }

    /// Returns the type of the items that a value of this type holds.
    pub(super) fn item(&self, of: Type) -> Type {
        match of {
            Type::Many(c) | Type::Lazy(c) => Type::Open(c),
            Type::Never => Type::Never,
            _ => Type::Known,
        }
    }

    /// Returns the type of a value that holds items of this type.
    pub(super) fn many(&self, of: Type) -> Type {
        match of {
            Type::Open(c) => Type::Many(c),
            _ => Type::Known,
        }
    }
}
