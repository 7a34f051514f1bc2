//! The guide: how to write apps, chapter by chapter. The tests compile and run its code.
//!
//! 1. [A first app](first_app)
//! 2. [Keys and maps](keys_and_maps)
//! 3. [Views](views)
//! 4. [Transactions and failure](transactions)
//! 5. [Questions and answers](questions)
//! 6. [Distinguishing failures](failures)
//! 7. [Time](time)
//! 8. [Settings](settings)
//! 9. [IO bees](io_bees)
//! 10. [Testing](testing)
//! 11. [What a crash does to an app](crashes)
//! 12. [Watching a hive](watching)
//! 13. [Embedding](embedding)
//! 14. [Logs and upgrades](logs)
//! 15. [What makes it fast](speed)
//! 16. [Coming from Ryu](from_ryu)
//! 17. [Apps for networks](network_apps)
//! 18. [Recipes](recipes)
//! 19. [What maps understand](understood)
//! 20. [Errors, one by one](errors)

macro_rules! chapters {
    ($($name:ident = $file:literal;)*) => {
        // This is an inner attribute, so relative links resolve from the module of the chapter.
        $(pub mod $name { #![doc = include_str!($file)] })*
    };
}

chapters! {
    first_app = "guide/first_app.md";
    keys_and_maps = "guide/keys_and_maps.md";
    views = "guide/views.md";
    transactions = "guide/transactions.md";
    questions = "guide/questions.md";
    failures = "guide/failures.md";
    time = "guide/time.md";
    settings = "guide/settings.md";
    io_bees = "guide/io_bees.md";
    testing = "guide/testing.md";
    crashes = "guide/crashes.md";
    watching = "guide/watching.md";
    embedding = "guide/embedding.md";
    logs = "guide/logs.md";
    speed = "guide/speed.md";
    from_ryu = "guide/from_ryu.md";
    network_apps = "guide/network_apps.md";
    understood = "guide/understood.md";
}

pub mod recipes {
    #![doc = include_str!("guide/recipes.md")]

    chapters! {
        waiting_requests = "guide/recipes/waiting_requests.md";
        unique_ids = "guide/recipes/unique_ids.md";
        external_service = "guide/recipes/external_service.md";
        two_keys = "guide/recipes/two_keys.md";
        joining_dictionaries = "guide/recipes/joining_dictionaries.md";
        removing_cells = "guide/recipes/removing_cells.md";
        byte_limits = "guide/recipes/byte_limits.md";
        upgrades = "guide/recipes/upgrades.md";
        following_a_message = "guide/recipes/following_a_message.md";
    }
}

pub mod errors {
    #![doc = include_str!("guide/errors.md")]

    chapters! {
        key_from_state = "guide/errors/key_from_state.md";
        key_changed_under_state = "guide/errors/key_changed_under_state.md";
        key_from_context = "guide/errors/key_from_context.md";
        key_from_configuration = "guide/errors/key_from_configuration.md";
        key_from_unknown_code = "guide/errors/key_from_unknown_code.md";
        key_from_hash_order = "guide/errors/key_from_hash_order.md";
        key_from_helper = "guide/errors/key_from_helper.md";
        all_cells = "guide/errors/all_cells.md";
        other_names = "guide/errors/other_names.md";
        self_escapes = "guide/errors/self_escapes.md";
        state_in_closure = "guide/errors/state_in_closure.md";
        state_in_macro = "guide/errors/state_in_macro.md";
        attempt = "guide/errors/attempt.md";
        helpers = "guide/errors/helpers.md";
        recursion = "guide/errors/recursion.md";
        endless_loop = "guide/errors/endless_loop.md";
        syntax = "guide/errors/syntax.md";
        integer_type = "guide/errors/integer_type.md";
        handler_shape = "guide/errors/handler_shape.md";
        handler_waits = "guide/errors/handler_waits.md";
        answers = "guide/errors/answers.md";
        typed_errors = "guide/errors/typed_errors.md";
        handler_twice = "guide/errors/handler_twice.md";
        handler_options = "guide/errors/handler_options.md";
        wrong_kind = "guide/errors/wrong_kind.md";
        expectation = "guide/errors/expectation.md";
        derives = "guide/errors/derives.md";
        app_fields = "guide/errors/app_fields.md";
        app_options = "guide/errors/app_options.md";
        keys_and_messages = "guide/errors/keys_and_messages.md";
        centralized = "guide/errors/centralized.md";
        joins = "guide/errors/joins.md";
    }
}
