//! The macro that declares updates of flow monitors: a length, an event, and a body that depends on the
//! event.

/// Declares a flow update and its body: a structure for each known event, and raw bytes for unknown events.
macro_rules! flow_update {
    (
        $(#[$update_meta:meta])*
        pub struct $update:ident of $event:ident;
        $(#[$body_meta:meta])*
        pub enum $body:ident<$life:lifetime> {
            $( $(#[$variant_meta:meta])* $variant:ident($structure:ty) = $($name:ident)|+, )+
        }
        default $default_event:ident, $default_variant:ident
    ) => {
        $(#[$update_meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $update<$life> {
            /// The event.
            pub event: $event,
            /// The body, whose structure depends on the event.
            pub body: $body<$life>,
        }

        $(#[$body_meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum $body<$life> {
            $( $(#[$variant_meta])* $variant($structure), )+
            /// The body of an unknown event.
            Unknown(&$life [u8]),
        }

        impl Default for $update<'_> {
            fn default() -> Self {
                Self { event: $event::$default_event, body: $body::$default_variant(Default::default()) }
            }
        }

        impl<$life> $crate::schema::Value<$life> for $update<$life> {
            fn read(reader: &mut $crate::schema::Reader<$life>) -> Result<Self, $crate::error::Error> {
                let outer = reader.enter($crate::error::Part::Statistics);
                let start = reader.offset();
                let length = usize::from(reader.name("flow update length").u16()?);
                let event = $event::read(reader.name("event"))?;
                let mut inner = reader.inner(length, 4, start, "flow update length")?;
                let body = match event {
                    $( $($event::$name)|+ => {
                        $body::$variant(<$structure as $crate::schema::Value<'_>>::read(&mut inner)?)
                    } )+
                    _ => $body::Unknown(inner.take_rest()),
                };
                inner.finish()?;
                reader.enter(outer);
                Ok(Self { event, body })
            }

            fn write(&self, writer: &mut $crate::schema::Writer<'_>) -> Result<(), $crate::encode::EncodeError> {
                let start = writer.position();
                let at = writer.reserve();
                self.event.write(writer)?;
                match &self.body {
                    $( $body::$variant(body) => body.write(writer)?, )+
                    $body::Unknown(body) => writer.put(body),
                }
                writer.patch(at, start)
            }

            fn show(&self, version: $crate::version::Version, sink: &mut dyn $crate::schema::Sink) {
                sink.open_record();
                sink.key("event");
                self.event.show(version, sink);
                match &self.body {
                    $( $body::$variant(body) => body.show_fields(version, sink), )+
                    $body::Unknown(body) => {
                        sink.key("body");
                        sink.bytes(body);
                    }
                }
                sink.close_record();
            }

            fn compose(
                source: &dyn $crate::schema::Source,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                let wrong = $crate::encode::EncodeError::Value { field: "event" };
                let told = source.field("event").ok_or(wrong)?;
                let event = <$event as $crate::schema::Scalar>::parse(told).ok_or(wrong)?;
                let start = writer.position();
                let at = writer.reserve();
                event.write(writer)?;
                match event {
                    $( $($event::$name)|+ => <$structure as $crate::schema::Value<'_>>::compose(source, writer)?, )+
                    _ => {
                        if let Some(body) = source.field("body") {
                            <&[u8] as $crate::schema::Value<'_>>::compose(body, writer)?;
                        }
                    }
                }
                writer.patch(at, start)
            }
        }
    };
}

pub(super) use flow_update;
