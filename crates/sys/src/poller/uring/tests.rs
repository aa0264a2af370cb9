//! What only io_uring can get wrong.
