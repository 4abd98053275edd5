//! Tests of the removal of unused imports and exports.

use expect_test::expect;

use super::*;

const PACKAGE: &str = "(‸defpackage :app
  (:use :cl)
  (:import-from :lib #:used #:unused
                #:string #:exported \"PREFIXED\")
  (:import-from :lib2 #:gone1 #:gone2)
  (:import-from :lib3 #:taken)
  (:import-from :lib4)
  (:shadowing-import-from :lib5 #:shadowing)
  (:export #:exported))";

#[test]
fn imports_that_no_text_has_are_removed() {
    let files = [
        ("p.lisp", PACKAGE),
        ("a.lisp", "(in-package :app)\n(defun f () (used '(gone3) :unused (find-symbol \"STRING\"))) ; unused gone1"),
        ("b.lisp", "(in-package :other)\n(unused) (gone1) (app::prefixed)"),
        ("c.lisp", "(defpackage :third (:import-from :app #:taken))"),
    ];
    expect![[r#"
        Remove the imports that nothing uses
        (defpackage :app
          (:use :cl)
          (:import-from :lib #:used
                        #:string #:exported "PREFIXED")
          (:import-from :lib3 #:taken)
          (:import-from :lib4)
          (:shadowing-import-from :lib5 #:shadowing)
          (:export #:exported))
    "#]]
    .assert_eq(&refactored(&files, "clean-imports"));
}

#[test]
fn an_import_of_a_package_defined_within_another_form_stays_where_a_closed_file_uses_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("user.lisp");
    let text = "(in-package :app)\n(used)";
    std::fs::write(&path, text).unwrap();
    let definition =
        "(eval-when (:compile-toplevel :load-toplevel)\n  (defpackage :app (:import-from :lib :used :unused)))";
    let image = FakeImage::absent().closed_file(&path, text);
    let cursor = Cursor::new(context(image, &[("p.lisp", definition)]), "file:///no/p.lisp", |_| 55).unwrap();
    let done = run(apply(&cursor, Span { start: 55, end: 55 }, "clean-imports", &FakeCompiler(Some(&[])))).unwrap();
    let removed: Vec<&str> =
        done.files[0].changes.iter().map(|change| &definition[change.span.start..change.span.end]).collect();
    assert_eq!(removed, [" :unused"]);
}

#[test]
fn an_import_that_may_be_used_stays() {
    let one = "(‸defpackage :app (:use :cl) (:import-from :lib #:f))";
    for other in [
        "(in-package :app)\n(f)",
        "(in-package :app)\n#+nil (f)",
        "(f)",
        "(in-package :app)\n'(x . F)",
        "(in-package :app)\n`(,@f)",
        "(in-package :other)\n(app::f)",
        "(in-package :other)\n(intern \"F\" :app)",
        "(in-package :other)\n(import-it '#:f)",
    ] {
        let found = refactored(&[("p.lisp", one), ("a.lisp", other)], "clean-imports");
        assert!(found.starts_with("not offered"), "{other}: {found}");
    }
    // In a package-inferred system, the clause makes the other file a dependency.
    check(
        "(‸defpackage :app/a\n  (:import-from :lib #:f))",
        "clean-imports",
        expect![[r#"
        Remove the imports that nothing uses
        (defpackage :app/a
          (:import-from :lib))
    "#]],
    );
    check(
        "(‸defpackage :a\n  ;; for g\n  (:import-from :lib #:f))",
        "clean-imports",
        expect![[r#"
        Remove the imports that nothing uses
        refused: the comment ;; for g would be lost: move it first
    "#]],
    );
}

#[test]
fn exports_that_no_other_package_uses_are_removed() {
    let package = "(‸defpackage :app\n  (:use :cl)\n  (:export #:used #:unused\n           #:qualified))";
    let rest = [
        ("a.lisp", "(in-package :app)\n(defun unused () (unused))"),
        ("b.lisp", "(defpackage :user (:use :cl :app))\n(in-package :user)\n(used)"),
        ("c.lisp", "(in-package :third)\n(app:qualified)"),
    ];
    let files = |package| std::iter::once(("p.lisp", package)).chain(rest).collect::<Vec<_>>();
    expect![[r#"
        Remove the exports that no other package of the workspace uses
        (defpackage :app
          (:use :cl)
          (:export #:used
                   #:qualified))
    "#]]
    .assert_eq(&refactored(&files(package), "clean-exports"));
    // There is nothing to remove, or the package is for users outside of the workspace.
    for package in ["(‸defpackage :app (:export #:used))", "(‸defpackage :app (:export #:unused))"] {
        let shown = refactored(&files(package), "clean-exports");
        assert!(!shown.contains("Remove the exports"), "{shown}");
    }
}
