//! Tests of mentions in forms that the image's reader skips (`#+`, `#-`).

use expect_test::expect;

use super::*;

#[test]
fn mentions_behind_guards_are_renamed() {
    global(
        &[
            (
                "a.lisp",
                r#"(in-package :lib)
(defun fa‸r (x) x)
#+clisp (defun g (x) (far x))
#-sbcl
(progn (far 1) #+(and abcl (not x)) #'far '#+ccl far)
(defun h (x)
  #+ecl (far 1)
  #+ecl #+ccl (far 1) (far 2)
  (#+ccl far #-ccl far 3)
  (list #+abcl (far 1) #-abcl (mapcar #'far x) #+abcl 'far)
  #+(or) (let ((far 1)) (far far))
  #+#.(cl:if t :sbcl :x) (far 1))
(let (#+ccl (y (far 1))) y)
#+allegro (declaim (inline far))
#+(or clisp
      ecl)
(eval-when (:compile-toplevel)
  (far 1))
#|(far 1)|#
"#,
            ),
            (
                "b.lisp",
                "#+clisp (in-package :stranger)\n(in-package :user)\n#+clisp (far 1)\n#-sbcl (stranger::far (lib:far 1))\n#+clisp (lib:far 1)",
            ),
            (
                "p.lisp",
                "(defpackage :lib (:use :cl) #+clisp (:export #:far) (:export #-clisp #:far))\n#+clisp (defpackage :user (:use :cl) (:import-from :lib #:far))\n(defpackage :user (:use :cl :lib))\n(defpackage :stranger (:use :cl))",
            ),
        ],
        "away",
        Options::default(),
        expect![[r#"
            function
            (in-package :lib)
            (defun away (x) x)
            #+clisp (defun g (x) (away x))
            #-sbcl
            (progn (away 1) #+(and abcl (not x)) #'away '#+ccl ?away)
            (defun h (x)
              #+ecl (away 1)
              #+ecl #+ccl (away 1) (away 2)
              (#+ccl away #-ccl away 3)
              (list #+abcl (away 1) #-abcl (mapcar #'away x) #+abcl '?away)
              #+(or) (let ((far 1)) (away far))
              #+#.(cl:if t :sbcl :x) (away 1))
            (let (#+ccl (y (away 1))) y)
            #+allegro (declaim (inline away))
            #+(or clisp
                  ecl)
            (eval-when (:compile-toplevel)
              (away 1))
            #|(far 1)|#

            #+clisp (in-package :stranger)
            (in-package :user)
            #+clisp (away 1)
            #-sbcl (stranger::far (lib:away 1))
            #+clisp (lib:away 1)
            (defpackage :lib (:use :cl) #+clisp (:export #:away) (:export #-clisp #:away))
            #+clisp (defpackage :user (:use :cl) (:import-from :lib #:away))
            (defpackage :user (:use :cl :lib))
            (defpackage :stranger (:use :cl))
        "#]],
    );
}

#[test]
fn a_guarded_in_package_leaves_it_to_a_person() {
    global(
        &[
            ("a.lisp", "(in-package :lib)\n(defun fa‸r (x) x)"),
            (
                "b.lisp",
                "#+clisp (in-package :stranger) #-clisp (in-package :lib)\n(far 1) (stranger::far (lib:far 1))\n\
                 #+ccl (in-package :user)\n(far 2)\n(in-package :stranger)\n(far 3)\n\
                 (in-package :user)\n#+ccl (in-package :lib)\n(far 4)",
            ),
            (
                "p.lisp",
                "(defpackage :lib (:use :cl) (:export #:far))\n(defpackage :user (:use :cl :lib))\n\
                 (defpackage :stranger (:use :cl))",
            ),
        ],
        "away",
        Options::default(),
        expect![[r#"
            function
            (in-package :lib)
            (defun away (x) x)
            #+clisp (in-package :stranger) #-clisp (in-package :lib)
            (?away 1) (stranger::far (lib:away 1))
            #+ccl (in-package :user)
            (?away 2)
            (in-package :stranger)
            (far 3)
            (in-package :user)
            #+ccl (in-package :lib)
            (away 4)
            (defpackage :lib (:use :cl) (:export #:away))
            (defpackage :user (:use :cl :lib))
            (defpackage :stranger (:use :cl))
        "#]],
    );
}

/// An expander for an image whose reader finds nothing in the form.
struct Skips;

impl Expander for Skips {
    async fn compare(&self, _: CompareExpansions) -> Result<Compared, ImageError> {
        Ok(Compared { failure: Some("end of file on #<STRING-INPUT-STREAM>".into()), ..Compared::default() })
    }
}

#[test]
fn a_form_that_is_not_read_is_told_by_its_condition() {
    let text = "#+(and ccl x)\n(defun f (x‸) (with-thing (y x) (g x)))";
    let cursor = cursor(FakeImage::absent(), &[("a.lisp", text)]);
    let refusal = run(rename(&cursor, "new", &Skips, Options::default())).unwrap_err();
    assert_eq!(refusal.0, "x is not read here (#+(and ccl x)), so no image can expand the form around it");
}
