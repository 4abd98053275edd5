//! The page of a manual about a name. The image is queried for the package of a symbol.

use super::context::Backend;
use super::manuals::{Manuals, Page};
use crate::image::api::symbols::SymbolPart;
use crate::shown;

/// Returns the page about a name as written, as [`Manuals::page`] does. If there is none, the
/// symbol's package is queried from the image, such as SB-EXT for `run-program`.
pub async fn find<B: Backend>(backend: &B, manuals: &Manuals, name: &str, package: Option<&str>) -> Option<Page> {
    if let Some(page) = manuals.page(name) {
        return Some(page);
    }
    let facts = backend.symbol(name, package, &[SymbolPart::Facts]).await.ok()?.facts?;
    manuals.page_of_symbol(facts.package.as_deref()?, &facts.name)
}

/// Returns the message for a name without a page.
pub fn no_page_message(name: &str) -> String {
    format!(
        "Neither the HyperSpec nor SBCL's manual has a page about {}. They are about symbols of COMMON-LISP, format \
         directives (~A), reader macros (#') and symbols of SB-EXT, SB-THREAD and the like.",
        shown::line(name)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, run};

    #[test]
    fn the_image_tells_whose_symbol_a_name_is() {
        let facts = json!({"name": "RUN-PROGRAM", "package": "SB-EXT", "external": true, "printed": "run-program",
            "kinds": ["function"], "documentation": []});
        let image = FakeImage::empty().symbol("run-program", json!({"found": true, "facts": facts}));
        let url = |name| run(find(&image, &Manuals::default(), name, None)).map(|page| page.url);
        assert_eq!(url("run-program").as_deref(), Some("http://www.sbcl.org/manual/#Running-external-programs"));
        assert_eq!(url("~%").as_deref(), Some("http://www.lispworks.com/documentation/HyperSpec/Body/22_cab.htm"));
        assert_eq!(url("scan"), None);
        assert!(no_page_message("scan").contains("about scan."));
        let absent = FakeImage::absent();
        assert!(run(find(&absent, &Manuals::default(), "car", None)).is_some(), "without an image");
    }
}
