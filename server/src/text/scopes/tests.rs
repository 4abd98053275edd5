use super::*;
use crate::text::document::Document;

/// Returns the source with `^` under every occurrence of the name at the caret `‸`, and its binding
/// form.
fn marked(source: &str) -> String {
    let caret = source.chars().position(|char| char == '‸').expect("a caret");
    let text = source.replace('‸', "");
    let document = Document::new(&text, 0);
    let form = Form::at(&document, caret).expect("a form");
    let scopes = Scopes::of(&form);
    let Some(index) = scopes.resolve(caret) else { return "nothing local".into() };
    let spans = scopes.occurrences(index);
    let binding = &scopes.bindings[index];
    let mut out = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let length = line.chars().count();
        let carets: String = (start..start + length)
            .map(|at| if spans.iter().any(|span| span.start <= at && at < span.end) { '^' } else { ' ' })
            .collect();
        out.push_str(&format!("{}\n", line.trim_end()));
        if !carets.trim().is_empty() {
            out.push_str(&format!("{}\n", carets.trim_end()));
        }
        start += length;
    }
    format!("{out}{} of {}", binding.kind.words(), binding.by)
}

fn visible(source: &str) -> String {
    let caret = source.chars().position(|char| char == '‸').expect("a caret");
    let document = Document::new(&source.replace('‸', ""), 0);
    let form = Form::at(&document, caret).expect("a form");
    let names: Vec<String> = Scopes::of(&form).visible(caret).iter().map(|binding| binding.name.clone()).collect();
    names.join(" ")
}

#[test]
fn parameters_and_shadowing() {
    insta::assert_snapshot!(marked("(defun f (x &optional (y x) &key ((:k z) y z-p))\n  (let ((x (g x‸)))\n    (h x y z)))"), @"
    (defun f (x &optional (y x) &key ((:k z) y z-p))
              ^              ^
      (let ((x (g x)))
                  ^
        (h x y z)))
    parameter of defun
    ");
    insta::assert_snapshot!(marked("(defun f (x)\n  (let ((x (g x)) (y x))\n    (h x‸ 'x `(x ,x) \"x\" x)))"), @r#"
    (defun f (x)
      (let ((x (g x)) (y x))
             ^
        (h x 'x `(x ,x) "x" x)))
           ^         ^      ^
    local variable of let
    "#);
    insta::assert_snapshot!(marked("(defun f (x)\n  (let* ((x‸ (g x)) (y x))\n    (h x y)))"), @"
    (defun f (x)
      (let* ((x (g x)) (y x))
              ^           ^
        (h x y)))
           ^
    local variable of let*
    ");
}

#[test]
fn functions_are_another_name_space() {
    insta::assert_snapshot!(marked("(defun f (list)\n  (flet ((list (x) (list x)))\n    (list‸ list #'list (mapcar 'list list))))"), @"
    (defun f (list)
      (flet ((list (x) (list x)))
              ^^^^
        (list list #'list (mapcar 'list list))))
         ^^^^        ^^^^
    local function of flet
    ");
    insta::assert_snapshot!(marked("(labels ((walk (n) (when n (walk (cdr n)))))\n  (walk‸ x))"), @"
    (labels ((walk (n) (when n (walk (cdr n)))))
              ^^^^              ^^^^
      (walk x))
       ^^^^
    local function of labels
    ");
}

#[test]
fn loops() {
    insta::assert_snapshot!(marked("(loop for (a . b‸) in x\n      for c = (f a b) then (g b)\n      when b collect b into d\n      finally (return (list b d)))"), @"
    (loop for (a . b) in x
                   ^
          for c = (f a b) then (g b)
                       ^          ^
          when b collect b into d
               ^         ^
          finally (return (list b d)))
                                ^
    local variable of loop
    ");
    insta::assert_snapshot!(marked("(do ((i 0 (1+ i)) (j i (+ i j)))\n    ((> i‸ 3) i)\n  (p i))"), @"
    (do ((i 0 (1+ i)) (j i (+ i j)))
          ^       ^           ^
        ((> i 3) i)
            ^    ^
      (p i))
         ^
    local variable of do
    ");
}

#[test]
fn clauses_of_loop_bind_together_and_words_are_so_by_their_place() {
    // A caret marks each name that has the meaning of the name at `‸`.
    for text in [
        "(defun f (x) (loop with ^x‸ = x and y = x for z below ^x collect (list ^x y z)))",
        "(defun f (^x‸) (loop with x = ^x and y = ^x with z = x for v in (g x) return z))",
        "(defun f (^x‸) (loop for x in ^x and y in ^x for z from x to x collect x))",
        "(loop for ^x‸ = y then (g ^x) and y = ^x then (h ^x y) collect ^x)",
        "(loop for a = 0 then ^b‸ for ^b = 1 then (+ a ^b) collect ^b)",
        "(defun f (l) (loop for ^count‸ in l sum ^count into sum finally (return sum)))",
        "(defun f (l) (loop for count in l sum count into ^sum finally (return ^sum‸)))",
        "(defun f (^items‸) (loop for x in ^items collect x into items finally (return items)))",
        "(defun f (^n‸) (loop repeat ^n for n from ^n by ^n collect n))",
        "(loop for ^it‸ in l when (g ^it) collect it and collect it else return (list ^it) end collect ^it)",
        "(loop for ^for‸ fixnum from 1 below 3 for with of-type list = (g ^for) do (g ^for) (h with) while ^for)",
        "(loop with in = 1 and (^of . by) = l for x across by repeat ^of maximize ^of‸ into y fixnum always x)",
        "(loop for k being the hash-keys of h using (hash-value ^v‸) when ^v do (g ^v) and sum ^v else do (h k ^v))",
        "(loop named a for ^to‸ in l initially (g ^to) finally return ^to)",
    ] {
        same_carets(text);
    }
}

#[test]
fn the_standards_own_macros() {
    for text in [
        "(defun f (^x‸) (with-simple-restart (x \"~a\" ^x) (print ^x)))",
        "(defun f (^lock‸) (with-mutex (^lock :wait-p ^lock) (g ^lock)) (bt:with-lock-held (^lock) ^lock))",
        "(defun f (^e‸) (handler-bind ((e #'g) (error (lambda (c) (h ^e c)))) (restart-bind ((e #'g)) ^e)))",
        "(defun f (^x‸) (with-standard-io-syntax (x ^x) ^x))",
        "(defun f (^x‸) (with-condition-restarts (x ^x) (list ^x) ^x))",
        "(defun f (x) (with-hash-table-iterator (^next‸ x) (list (^next) next)))",
        "(defsetf access (^o‸ &optional k) (v) `(set-it ,^o ,k ,v))",
        "(defsetf access (o) (^v‸ w) `(set-it ,o ,^v ,w))",
        "(defun f (x) (do-all-symbols (^s‸ (list ^s)) (print ^s)))",
    ] {
        same_carets(text);
    }
}

/// Checks that the occurrences of the name at `‸` are those with a `^` before them.
fn same_carets(source: &str) {
    let mut expected = Vec::new();
    let (mut text, mut caret) = (String::new(), 0);
    for char in source.chars() {
        match char {
            '^' => expected.push(text.chars().count()),
            '‸' => caret = text.chars().count(),
            _ => text.push(char),
        }
    }
    let document = Document::new(&text, 0);
    let scopes = Scopes::of(&Form::at(&document, caret).expect("a form"));
    let found = scopes.resolve(caret).map(|index| scopes.occurrences(index)).unwrap_or_default();
    let found: Vec<usize> = found.iter().map(|span| span.start).collect();
    assert_eq!(found, expected, "{source}");
}

#[test]
fn methods_destructuring_slots_and_handlers() {
    insta::assert_snapshot!(marked("(defmethod area :around ((s shape) &key unit)\n  (with-slots (width (h height)) s‸\n    (* width h)))"), @"
    (defmethod area :around ((s shape) &key unit)
                              ^
      (with-slots (width (h height)) s
                                     ^
        (* width h)))
    parameter of defmethod
    ");
    insta::assert_snapshot!(marked("(defmethod area ((s shape))\n  (with-slots (width (h height)) s\n    (* width h‸)))"), @"
    (defmethod area ((s shape))
      (with-slots (width (h height)) s
                          ^
        (* width h)))
                 ^
    local symbol macro of with-slots
    ");
    insta::assert_snapshot!(marked("(destructuring-bind (a (b &rest c) &key (d a)) a\n  (declare (ignore c))\n  (handler-case (f a‸) (error (a) a)))"), @"
    (destructuring-bind (a (b &rest c) &key (d a)) a
                         ^                     ^
      (declare (ignore c))
      (handler-case (f a) (error (a) a)))
                       ^
    local variable of destructuring-bind
    ");
    insta::assert_snapshot!(marked("(defmacro with-x ((var &body) &body body)\n  (with-open-file (s‸ \"f\") (read s))\n  `(let ((s ,s)) ,@body))"), @r#"
    (defmacro with-x ((var &body) &body body)
      (with-open-file (s "f") (read s))
                       ^            ^
      `(let ((s ,s)) ,@body))
    local variable of with-open-file
    "#);
}

#[test]
fn what_is_not_local_is_nothing() {
    assert_eq!(marked("(defun f (x) (g‸ x))"), "nothing local");
    assert_eq!(marked("(defun f (x) '(x‸))"), "nothing local");
    assert_eq!(marked("(case x (y‸ 1))"), "nothing local");
}

#[test]
fn what_is_in_force() {
    assert_eq!(visible("(defun f (a b) (let ((c 1) (a 2)) (flet ((g (d) d)) ‸)))"), "g a c b");
    assert_eq!(visible("(defun f (a b) (let* ((c 1) (d ‸)) (h)))"), "c b a");
    assert_eq!(visible("(defun f (a) (dolist (x a) (p ‸"), "x a");
    assert_eq!(visible("(loop for x in y do (f ‸))"), "x");
}

#[test]
fn blocks_and_tags() {
    let carets =
        |columns: &[(usize, usize)]| -> String {
            let last = columns.last().map_or(0, |(start, length)| start + length);
            (0..last)
                .map(|at| {
                    if columns.iter().any(|(start, length)| (*start..start + length).contains(&at)) { '^' } else { ' ' }
                })
                .collect()
        };
    // The block of a local function has its name. An inner block of that name is another one.
    let (first, second) = ("(flet ((f () (return-from f)))", "  (block f (return-from f (f))))");
    let expected =
        format!("{first}\n{}\n{second}\n{}\nlocal function of flet", carets(&[(8, 1), (26, 1)]), carets(&[(27, 1)]));
    assert_eq!(marked(&format!("(flet ((f‸ () (return-from f)))\n{second}")), expected);
    let text = "(prog (x) again (unless x (go again)) x)";
    let expected = format!("{text}\n{}\ntag of prog", carets(&[(10, 5), (30, 5)]));
    assert_eq!(marked("(prog (x) again (unless x (go again‸)) x)"), expected);
    let text = "(loop named out for x in y do (return-from out x))";
    let expected = format!("{text}\n{}\nblock of loop", carets(&[(12, 3), (43, 3)]));
    assert_eq!(marked("(loop named out for x in y do (return-from out‸ x))"), expected);
}

#[test]
fn a_name_of_another_package_is_another_name() {
    for (source, expected) in [
        ("(foo:let ((x 1)) x‸)", 0),
        ("(cl:let ((x 1)) x‸)", 2),
        ("(common-lisp::let ((x 1)) x‸)", 2),
        ("(let ((x‸ 1)) foo:x)", 1),
        ("(let ((foo:x‸ 1)) foo::x)", 2),
        ("(let ((foo:x‸ 1)) x)", 1),
        ("(alexandria:when-let ((x 1)) x‸)", 2),
        ("(bt:with-lock (x l) x‸)", 2),
    ] {
        let offset = source.chars().position(|char| char == '‸').expect("a caret");
        let document = Document::new(&source.replace('‸', ""), 0);
        let scopes = Scopes::of(&Form::at(&document, offset).expect("a form"));
        let found = scopes.resolve(offset).map_or(0, |index| scopes.occurrences(index).len());
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn code_in_the_options_of_classes_and_structures_binds() {
    for text in [
        "(define-condition c () () (:report (lambda (^c‸ s) (format s \"~a\" (f ^c)))))",
        "(defstruct (c (:print-function (lambda (^c‸ s d) (f ^c s d)))) s)",
        "(defclass c () () (:default-initargs :x (lambda (^c‸) ^c) :c c))",
    ] {
        same_carets(text);
    }
}

#[test]
fn patterns_behind_body_are_destructured() {
    for text in [
        "(defmacro m (x &body (^y‸ &optional (z ^y))) `(f ,x ,^y ,z))",
        "(destructuring-bind (a &rest (b ^c‸)) l (list a b ^c))",
        "(defun f (&rest x &key (^y‸ z)) (list ^y))",
        "(symbol-macrolet ((a (car ^b)) (^b‸ l)) (list a ^b))",
    ] {
        same_carets(text);
    }
}
