//! The client's breakpoints and exception filters in a new image: set there before the client's
//! first evaluation in it.

use super::connection::{Connection, image_of};
use super::{breakpoints, exceptions};
use crate::locked::lock;

/// Sets all breakpoints and filters in the image that answers, unless they are set there.
/// `anew`: also if they are.
pub(super) async fn set_all(connection: &Connection, anew: bool) {
    let mut set_in = connection.set_in.lock().await;
    let image = image_of(&connection.session.image_state());
    if image.is_none() || (*set_in == image && !anew) {
        return;
    }
    exceptions::set_again(connection).await;
    breakpoints::set_again(connection, None).await;
    *set_in = image;
}

/// Waits until an evaluation that begins now would stop where the client wants: starts the image if
/// there is something to set in it.
pub(super) async fn wait_until_set(connection: &Connection) {
    if lock(&connection.wanted).files.is_empty() && lock(&connection.break_on).is_empty() {
        return;
    }
    connection.session.image_started().await;
    set_all(connection, false).await;
}
