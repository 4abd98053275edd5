//! The client's breakpoints and exception filters in a new image. They are set before the client's
//! first evaluation there.

use std::time::Duration;

use super::connection::Connection;
use super::{breakpoints, exceptions};
use crate::locked::lock;
use crate::model::image::ImageError;

/// The time limit for setting all that a client wants in a new image. It is long, because texts and
/// definitions are read with reader macros and macros of the user.
const SETTING_TIMEOUT: Duration = Duration::from_secs(120);

/// Sets all breakpoints and filters in the present image, unless this was done already. With
/// `anew`, sets them again.
pub(super) async fn set_all(connection: &Connection, anew: bool) {
    let mut set_in = connection.set_in.lock().await;
    let image = connection.session.image_state().image().map(str::to_owned);
    if image.is_none() || (*set_in == image && !anew) {
        return;
    }
    let setting = async {
        exceptions::set_again(connection).await;
        breakpoints::set_again(connection, None).await;
    };
    if crate::steady::timeout(SETTING_TIMEOUT, setting).await.is_err() {
        let seconds = SETTING_TIMEOUT.as_secs();
        connection.print_in_console(&format!(
            "Not all breakpoints were set in the new image: it took longer than {seconds} s. Set them again.\n"
        ));
    }
    *set_in = image;
}

/// Waits until an evaluation that begins afterwards would stop where the client wants. Starts the
/// image if there is something to set in it.
///
/// # Errors
/// The image does not start.
pub(super) async fn wait_until_set(connection: &Connection) -> Result<(), ImageError> {
    if lock(&connection.requested_breakpoints).files.is_empty() && lock(&connection.break_on).is_empty() {
        return Ok(());
    }
    connection.session.wait_until_ready().await?;
    set_all(connection, false).await;
    Ok(())
}
