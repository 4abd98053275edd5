//! On cl-ppcre as loaded: a hundred symbols, with answers compared with those of sb-introspect, and
//! SBCL's own reader to find the form of a position.

use std::collections::BTreeMap;

use consort::session::path_of_uri;
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

/// A Lisp program that prints facts about a hundred symbols of cl-ppcre, one a line: the kind of
/// fact, the symbol, and for a place the file and the span of the top-level form.
const ORACLE: &str = r#"
(let* ((package (find-package :cl-ppcre)) (cl-user::files (make-hash-table :test 'equal)) (all '()) (*print-pretty* nil))
  (labels ((text (file)
             (with-open-file (in file)
               (let* ((s (make-string (file-length in))) (n (read-sequence s in))) (subseq s 0 n))))
           (spans (file)
             (or (gethash file cl-user::files)
                 (setf (gethash file cl-user::files)
                       (let ((*package* package) (text (text file)) (position 0) (spans '()))
                         (loop
                           (multiple-value-bind (form end) (read-from-string text nil 'cl-user::eof :start position)
                             (when (eq form 'cl-user::eof) (return (coerce (nreverse spans) 'vector)))
                             (when (and (consp form) (eq (first form) 'in-package)) (setf *package* (find-package (second form))))
                             (push (cons position end) spans)
                             (setf position end)))))))
           (place (source)
             (let ((file (sb-introspect:definition-source-pathname source))
                   (number (first (sb-introspect:definition-source-form-path source))))
               (when (and file number)
                 (let ((span (aref (spans (sb-ext:native-namestring (translate-logical-pathname file))) number)))
                   (list (sb-ext:native-namestring file) (car span) (cdr span))))))
           (say (what symbol &rest facts)
             (format t "~A	~(~A~)~{	~A~}~%" what (symbol-name symbol) facts))
           (say-places (what symbol sources)
             (dolist (source sources)
               (let ((place (ignore-errors (place source)))) (when place (apply #'say what symbol place))))))
    (do-symbols (symbol package)
      (when (and (eq (symbol-package symbol) package)
                 (or (fboundp symbol) (boundp symbol) (find-class symbol nil)))
        (pushnew symbol all)))
    (setf all (sort all #'string< :key #'symbol-name))
    (loop with step = (/ (length all) 100)
          for index from 0 below 100
          for symbol = (nth (floor (* index step)) all)
          do (say "symbol" symbol)
             (dolist (kind '(:function :generic-function :method :macro :compiler-macro :variable :constant :class :structure :condition :type :setf-expander))
               (say-places "definition" symbol (ignore-errors (sb-introspect:find-definition-sources-by-name symbol kind))))
             (when (fboundp (list 'setf symbol))
               (dolist (kind '(:function :generic-function :method))
                 (say-places "definition" symbol (sb-introspect:find-definition-sources-by-name (list 'setf symbol) kind))))
             ;; Each takes a tenth of a second, and in newer SBCLs may collect garbage first: only
             ;; those that can have something to say.
             (dolist (who (append (cond ((macro-function symbol) '(sb-introspect:who-macroexpands))
                                        ((fboundp symbol) '(sb-introspect:who-calls)))
                                  (when (boundp symbol) '(sb-introspect:who-binds sb-introspect:who-sets sb-introspect:who-references))
                                  '(sb-introspect:who-specializes-directly)))
               (say-places "reference" symbol (mapcar #'cdr (ignore-errors (funcall who symbol)))))
             (when (fboundp symbol)
               (dolist (part (sb-introspect:function-lambda-list symbol))
                 (when (and (symbolp part) part) (say "parameter" symbol (string-downcase (symbol-name part))))))
             (let ((text (or (documentation symbol 'function) (documentation symbol 'variable) (documentation symbol 'type))))
               (when text (say "documentation" symbol (subseq text 0 (position #\Newline text)))))
             (let* ((name (symbol-name symbol)) (typed (subseq name 0 (max 1 (floor (* 2 (length name)) 3)))) (found '()))
               (do-symbols (other package)
                 (when (and (eql 0 (search typed (symbol-name other))) (or (fboundp other) (boundp other) (find-class other nil)))
                   (pushnew (string-downcase (symbol-name other)) found :test #'string=)))
               (apply #'say "completion" symbol (string-downcase typed) found)))))
"#;

type Facts = BTreeMap<String, BTreeMap<String, Vec<Vec<String>>>>;

/// Returns the rest of each line, by symbol and by kind of fact.
fn facts(output: &str) -> Facts {
    let mut all = Facts::new();
    for line in output.lines().filter(|line| line.contains('\t')) {
        let mut fields = line.split('\t').map(str::to_owned);
        let (what, symbol) = (fields.next().unwrap(), fields.next().unwrap());
        all.entry(symbol).or_default().entry(what).or_default().push(fields.collect());
    }
    all
}

/// Files as characters, to turn positions into offsets.
#[derive(Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn offset(&mut self, location: &Value) -> (String, usize) {
        let path = path_of_uri(location["uri"].as_str().unwrap()).unwrap().to_string_lossy().into_owned();
        let text = self.0.entry(path.clone()).or_insert_with(|| std::fs::read_to_string(&path).unwrap_or_default());
        let start = &location["range"]["start"];
        let (line, character) = (start["line"].as_u64().unwrap(), start["character"].as_u64().unwrap());
        let lines = text.split_inclusive('\n').take(usize::try_from(line).unwrap());
        let before: usize = lines.map(|line| line.chars().count()).sum();
        (path, before + usize::try_from(character).unwrap())
    }
}

fn covers(span: &[String], file: &str, offset: usize) -> bool {
    let number = |n: usize| span[n].parse::<usize>().unwrap();
    span[0] == file && number(1) <= offset && offset < number(2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_symbols_of_cl_ppcre() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let loaded = editor.command("consort.loadSystem", json!({"system": "cl-ppcre"})).await.unwrap();
    assert_eq!(loaded["loaded"], true, "{loaded}");
    let outcome = editor.command("consort.eval", json!({"code": ORACLE})).await.unwrap();
    assert_eq!(
        (outcome["status"].as_str(), outcome["omitted"].as_u64()),
        (Some("ok"), Some(0)),
        "{}",
        outcome["error"]
    );
    let facts = facts(outcome["stdout"].as_str().unwrap());
    assert!(facts.len() >= 95, "{} symbols", facts.len());

    let uri = world.uri("names.lisp");
    let mut text = String::from("(in-package :cl-ppcre)\n");
    let mut lines = Vec::new();
    for (symbol, known) in &facts {
        lines.push(symbol);
        text.push_str(&format!("{symbol}\n{}\n", known["completion"][0][0]));
    }
    editor.open(&uri, &text).await;
    let (mut definitions, mut references, mut files) = (0, 0, Files::default());
    for (index, symbol) in lines.into_iter().enumerate() {
        let known = &facts[symbol];
        let none = Vec::new();
        let of = |what: &str| known.get(what).unwrap_or(&none).clone();
        let at = json!({"line": 1 + 2 * index, "character": 0});
        let place = json!({"textDocument": {"uri": uri}, "position": at, "context": {"includeDeclaration": true}});

        let found = editor.request("textDocument/definition", place.clone()).await.unwrap();
        let found: Vec<(String, usize)> = found.as_array().into_iter().flatten().map(|one| files.offset(one)).collect();
        for span in of("definition") {
            assert!(
                found.iter().any(|(file, offset)| covers(&span, file, *offset)),
                "{symbol}: no definition in {span:?} but {found:?}"
            );
            definitions += 1;
        }
        for (file, offset) in &found {
            assert!(
                of("definition").iter().any(|span| covers(span, file, *offset)),
                "{symbol}: {file} {offset} is no definition"
            );
        }

        let found = editor.request("textDocument/references", place.clone()).await.unwrap();
        let found: Vec<(String, usize)> = found.as_array().into_iter().flatten().map(|one| files.offset(one)).collect();
        for span in of("reference").iter().filter(|span| span[0].contains("cl-ppcre")) {
            assert!(
                found.iter().any(|(file, offset)| covers(span, file, *offset)),
                "{symbol}: no reference in {span:?} but {found:?}"
            );
            references += 1;
        }

        let hover = editor.request("textDocument/hover", place).await.unwrap();
        let hover = hover["contents"]["value"].as_str().unwrap_or_else(|| panic!("{symbol}: no hover"));
        for part in of("parameter").iter().chain(&of("documentation")) {
            assert!(hover.contains(&part[0]), "{symbol}: no {:?} in {hover}", part[0]);
        }

        let completion = &of("completion")[0];
        let at = json!({"line": 2 + 2 * index, "character": completion[0].len()});
        let ask = json!({"textDocument": {"uri": uri}, "position": at});
        // The index of names is filled in the background.
        let due = std::time::Instant::now() + consort_tests::patience::PATIENCE;
        let labels = loop {
            let answer = editor.request("textDocument/completion", ask.clone()).await.unwrap();
            let labels = super::labels(&answer);
            if completion[1..].iter().all(|one| labels.contains(one)) || std::time::Instant::now() > due || index > 0 {
                break labels;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        for wanted in &completion[1..] {
            assert!(labels.contains(wanted), "{symbol}: {wanted} does not complete {}: {labels:?}", completion[0]);
        }
    }
    // Otherwise hardly anything was compared.
    assert!(definitions >= 100 && references >= 100, "{definitions} definitions, {references} references");
    world.end().await;
}
