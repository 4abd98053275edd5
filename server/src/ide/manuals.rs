//! The addresses of manuals: the HyperSpec, on the web or in a directory, and SBCL's manual.

use std::path::{Path, PathBuf};

use super::hyperspec;
use crate::file_uri::uri_of_path;
use crate::text::names;

/// The HyperSpec on the web.
const HYPERSPEC: &str = "http://www.lispworks.com/documentation/HyperSpec/";
/// SBCL's manual on the web, in one page.
const SBCL: &str = "http://www.sbcl.org/manual/";

/// Sections of SBCL's manual about its packages, by their anchors.
const PACKAGES: [(&str, &str); 19] = [
    ("SB-EXT", "Beyond-the-ANSI-Standard"),
    ("SB-THREAD", "Threading"),
    ("SB-ALIEN", "Foreign-Function-Interface"),
    ("SB-MOP", "Metaobject-Protocol"),
    ("SB-GRAY", "Gray-Streams"),
    ("SB-SEQUENCE", "Extensible-Sequences"),
    ("SB-UNICODE", "Unicode-Support"),
    ("SB-DEBUG", "Debugger"),
    ("SB-BSD-SOCKETS", "Networking"),
    ("SB-SPROF", "Statistical-Profiler"),
    ("SB-PROFILE", "Deterministic-Profiler"),
    ("SB-POSIX", "sb_002dposix"),
    ("SB-INTROSPECT", "sb_002dintrospect"),
    ("SB-COVER", "sb_002dcover"),
    ("SB-CONCURRENCY", "sb_002dconcurrency"),
    ("SB-MD5", "sb_002dmd5"),
    ("SB-ROTATE-BYTE", "sb_002drotate_002dbyte"),
    ("SB-ACLREPL", "sb_002daclrepl"),
    ("SB-SIMPLE-STREAMS", "sb_002dsimple_002dstreams"),
];

/// Sections about symbols of SB-EXT, by parts of the symbols' names.
const EXTENSIONS: [(&str, &str); 21] = [
    ("SAVE-LISP-AND-DIE", "Saving-a-Core-Image"),
    ("RUN-PROGRAM", "Running-external-programs"),
    ("PROCESS-", "Running-external-programs"),
    ("*POSIX-ARGV*", "Command_002dline-arguments"),
    ("POSIX-GETENV", "Querying-the-process-environment"),
    ("POSIX-ENVIRON", "Querying-the-process-environment"),
    ("LOCAL-NICKNAME", "Package_002dLocal-Nicknames"),
    ("PACKAGE-LOCK", "Package-Locks"),
    ("LOCK-PACKAGE", "Package-Locks"),
    ("LOCKED-PACKAGES", "Package-Locks"),
    ("GC", "Garbage-Collection"),
    ("BYTES-CONSED", "Garbage-Collection"),
    ("DYNAMIC-SPACE", "Garbage-Collection"),
    ("FINALIZE", "Finalization"),
    ("FINALIZATION", "Finalization"),
    ("HASH-TABLE", "Hash-Table-Extensions"),
    ("TIMER", "Timers"),
    ("WITH-TIMEOUT", "Timeouts-and-Deadlines"),
    ("DEADLINE", "Timeouts-and-Deadlines"),
    ("*INVOKE-DEBUGGER-HOOK*", "Debugger"),
    ("DISABLE-DEBUGGER", "Debugger"),
];

/// A page of a manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The manual: `HyperSpec`, `SBCL manual`.
    pub manual: &'static str,
    /// The address.
    pub url: String,
    /// The file of the page, if the manual is in a directory.
    pub file: Option<PathBuf>,
}

/// The places of the manuals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manuals {
    /// The directory that has the HyperSpec's `Body/`, or an address that ends in `/`.
    hyperspec: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Directory(PathBuf),
    Web(String),
}

impl Manuals {
    /// Creates the manuals for the setting `docs.hyperspec`, which is a directory or an address. An
    /// empty setting, or a directory without a HyperSpec, means the address on the web.
    pub fn new(setting: &str) -> Manuals {
        let hyperspec = if setting.is_empty() {
            None
        } else if setting.starts_with("http://") || setting.starts_with("https://") {
            Some(Place::Web(format!("{}/", setting.trim_end_matches('/'))))
        } else {
            let within = [Path::new(setting).to_owned(), Path::new(setting).join("HyperSpec")];
            within.into_iter().find(|directory| directory.join("Body").is_dir()).map(Place::Directory)
        };
        Manuals { hyperspec }
    }

    /// Returns the page about a name as written: a symbol of COMMON-LISP in any case, a format
    /// directive (`~A`, `~:[`), a reader macro (`#'`), or a symbol of SBCL with its package.
    pub fn page(&self, written: &str) -> Option<Page> {
        let name = written.trim();
        hyperspec::page(name).map(|page| self.hyperspec_page(page)).or_else(|| {
            let symbol = names::symbol(name)?;
            self.sbcl_page(&symbol.package?, &symbol.name)
        })
    }

    /// Returns the page about a symbol by its home package and name.
    pub fn page_of_symbol(&self, package: &str, name: &str) -> Option<Page> {
        if package == "COMMON-LISP" {
            return hyperspec::page_of_symbol(name).map(|page| self.hyperspec_page(page));
        }
        self.sbcl_page(package, name)
    }

    /// Returns a page of the HyperSpec, by its name.
    pub fn hyperspec_page(&self, page: &str) -> Page {
        let manual = "HyperSpec";
        match &self.hyperspec {
            Some(Place::Directory(directory)) => {
                let file = directory.join("Body").join(format!("{page}.htm"));
                Page { manual, url: uri_of_path(&file), file: Some(file) }
            }
            Some(Place::Web(root)) => Page { manual, url: format!("{root}Body/{page}.htm"), file: None },
            None => Page { manual, url: format!("{HYPERSPEC}Body/{page}.htm"), file: None },
        }
    }

    fn sbcl_page(&self, package: &str, name: &str) -> Option<Page> {
        let (_, section) = PACKAGES.iter().find(|(known, _)| *known == package)?;
        let of_name = EXTENSIONS.iter().filter(|_| package == "SB-EXT").find(|(part, _)| name.contains(part));
        let section = of_name.map_or(*section, |(_, section)| section);
        Some(Page { manual: "SBCL manual", url: format!("{SBCL}#{section}"), file: None })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_pages() {
        let manuals = Manuals::default();
        for (name, manual, url) in [
            ("with-slots", "HyperSpec", "http://www.lispworks.com/documentation/HyperSpec/Body/m_w_slts.htm"),
            ("~a", "HyperSpec", "http://www.lispworks.com/documentation/HyperSpec/Body/22_cda.htm"),
            ("sb-ext:run-program", "SBCL manual", "http://www.sbcl.org/manual/#Running-external-programs"),
            ("sb-ext:word", "SBCL manual", "http://www.sbcl.org/manual/#Beyond-the-ANSI-Standard"),
            ("SB-THREAD::make-mutex", "SBCL manual", "http://www.sbcl.org/manual/#Threading"),
        ] {
            let page = manuals.page(name).unwrap();
            assert_eq!((page.manual, page.url.as_str()), (manual, url), "{name}");
        }
        assert_eq!(manuals.page("app:scan"), None);
        assert_eq!(manuals.page_of_symbol("APP", "CAR"), None, "a symbol of the same name is another");
        assert!(manuals.page_of_symbol("COMMON-LISP", "CAR").is_some());
    }

    #[test]
    fn the_hyperspec_is_where_the_setting_says() {
        let place = tempfile::tempdir().unwrap();
        let setting = place.path().to_str().unwrap();
        let url = |setting: &str| Manuals::new(setting).page("car").unwrap().url;
        let usual = "http://www.lispworks.com/documentation/HyperSpec/Body/f_car_c.htm";
        assert_eq!(url(""), usual);
        assert_eq!(url(setting), usual, "a directory without one");
        assert_eq!(url("https://example.org/clhs"), "https://example.org/clhs/Body/f_car_c.htm");
        std::fs::create_dir_all(place.path().join("HyperSpec/Body")).unwrap();
        let page = Manuals::new(setting).page("car").unwrap();
        assert_eq!(page.url, format!("file://{setting}/HyperSpec/Body/f_car_c.htm"));
        assert_eq!(page.file, Some(place.path().join("HyperSpec/Body/f_car_c.htm")));
    }
}
