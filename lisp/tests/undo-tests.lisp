;;;; Undoing what a reload did to packages, conditions and structures; what cannot be undone is
;;;; named.

(in-package :consort)

(defun not-undone-p (outcome &rest texts)
  "Returns true if OUTCOME names just these as not undone."
  (let ((notes (coerce (path outcome "not_undone") 'list)))
    (or (and (= (length notes) (length texts)) (every #'text-contains texts notes))
        (progn (format t "~&  ~S~%" notes) nil))))

(defun one-line (text)
  "TEXT with what the pretty printer breaks on one line."
  (format nil "~{~A~^ ~}" (remove "" (uiop:split-string text :separator '(#\Space #\Newline)) :test #'string=)))

(deftest undo-packages
  (with-image (image)
    (compile-string image "(defpackage :hu-lib (:use) (:export #:shared #:other)) (defpackage :hu-more (:use) (:export #:extra))
(defpackage :hu (:use :cl) (:nicknames :hu-nick) (:import-from :hu-lib #:shared) (:export #:api #:kept))
(in-package :hu) (defun api () (list 'list 'shared)) (defun kept () 1)")
    (let* ((probe "(let ((p (find-package :hu)))
  (flet ((names (symbols) (sort (mapcar #'symbol-name symbols) #'string<)))
    (list (names (let ((all '())) (do-external-symbols (s p all) (push s all)))) (names (package-shadowing-symbols p))
          (sort (mapcar #'package-name (package-use-list p)) #'string<) (sort (copy-list (package-nicknames p)) #'string<) (sb-ext:package-local-nicknames p)
          (mapcar (lambda (name) (multiple-value-bind (s status) (find-symbol name p) (list (and s (package-name (symbol-package s))) status)))
                  '(\"SHARED\" \"OTHER\" \"EXTRA\" \"LIST\" \"API\")))))")
           (old (first-value image probe)))
      (let ((outcome (compile-string image "(defpackage :hu (:use :cl :hu-more) (:shadow #:list) (:nicknames :hu-nick :hu-second) (:local-nicknames (:m :hu-more))
 (:import-from :hu-lib #:shared #:other) (:export #:api #:kept #:new-api #:shared)) (in-package :hu) (defun new-api () 'other) (defun list () :mine)")))
        (ok (reloaded-p outcome))
        (ok (listed outcome "redefined" "package HU"))
        (ok (listed outcome "new" "function HU:NEW-API")))
      (ok (not (equal old (first-value image probe))))
      (ok (not-undone-p (undo image)))
      (is equal old (first-value image probe))
      (is equal "(LIST HU-LIB:SHARED)" (first-value image "(hu:api)"))
      ;; A symbol that the source no longer exports is exported still, which is reported, and no
      ;; failure.
      (let ((outcome (compile-string image "(defpackage :hu (:use :cl) (:nicknames :hu-nick) (:import-from :hu-lib #:shared) (:export #:api))")))
        (ok (reloaded-p outcome))
        (ok (text-contains "package HU also exports" (path outcome "report" "gone" 0)))
        (ok (text-contains "KEPT" (path outcome "report" "gone" 0))))
      (undo image)
      ;; A definition that is removed by hand.
      (ok (reloaded-p (compile-string image "(eval-when (:load-toplevel) (unexport 'hu::kept :hu) (unuse-package :cl :hu) (unintern 'hu::shared :hu) (rename-package :hu :hu '(:hu-other)))")))
      ;; Symbols alone are nothing to take back.
      (let ((outcome (compile-string image "(intern \"SHARED\" :hu) (intern \"CAR\" :hu)")))
        (ok (reloaded-p outcome))
        (is eq :false (path outcome "recorded")))
      (ok (not-undone-p (undo image)))
      (is equal old (first-value image probe)))
    ;; A new package stays, and is said to.
    (ok (listed (compile-string image "(defpackage :hu-new (:use :cl))") "new" "package HU-NEW"))
    (ok (not-undone-p (undo image) "the package HU-NEW, which was new, stays"))))

(deftest undo-conditions
  (with-image (image)
    (compile-string image "(defpackage :hc (:use :cl)) (in-package :hc)
(define-condition c (error) ((a :initarg :a :reader a-of :initform 1)) (:report \"old\") (:documentation \"old\") (:default-initargs :a 5))
(define-condition child (c) ()) (define-condition moved (error) ())")
    (let* ((probe "(let ((c (make-condition 'hc::c)) (child (make-condition 'hc::child)))
  (list (princ-to-string c) (princ-to-string child) (hc::a-of c) (hc::a-of child) (documentation 'hc::c 'type) (ignore-errors (hc::b-of c))
        (typep (make-condition 'hc::moved) 'hc::c) (and (find-class 'hc::fresh nil) t)
        (sb-introspect:find-definition-sources-by-name 'hc::c :condition)))")
           (old (progn (evaluated image "'hc::(b-of fresh)") (first-value image probe))))
      (let ((outcome (compile-string image "(in-package :hc)
(define-condition c (error) ((a :initarg :a :reader a-of :initform 2) (b :reader b-of :initform 3)) (:report \"new\") (:documentation \"new\"))
(define-condition moved (c) ()) (define-condition fresh (c) ((d :reader d-of)))")))
        (ok (reloaded-p outcome))
        (ok (listed outcome "redefined" "condition HC::C"))
        (ok (listed outcome "new" "condition HC::FRESH")))
      (is equal "(\"new\" \"new\" 2 " (subseq (one-line (first-value image probe)) 0 15))
      (ok (not-undone-p (undo image)))
      (is equal old (first-value image probe)))))

(deftest undo-structures
  (with-image (image)
    (compile-string image "(defpackage :hs (:use :cl)) (in-package :hs) (defstruct s \"old\" (a 1) (b 2)) (defconstant +k+ 1) (defstruct point x y)")
    (evaluated image "(defvar *s* (hs::make-s :a 7))")
    (let* ((probe "(progn (defstruct (sub (:include hs::s))) (list (hs::make-s) (hs::s-a *s*) (documentation 'hs::s 'structure) (sub-a (make-sub)) (fboundp 'hs::new-s)
  (sb-introspect:find-definition-sources-by-name 'hs::s :structure) hs::+k+ (and (find-class 'hs::fresh nil) t) (fboundp 'hs::make-fresh)))")
           (old (progn (evaluated image "'hs::(new-s fresh make-fresh)") (first-value image probe))))
      (let ((outcome (compile-string image "(in-package :hs) (defstruct (s (:constructor make-s) (:constructor new-s (a))) \"new\" (a 10) (b 20)) (defconstant +k+ 2)
(defstruct fresh c) (defstruct point x y z)")))
        (ok (reloaded-p outcome))
        (ok (listed outcome "redefined" "structure HS::S"))
        (ok (listed outcome "new" "structure HS::FRESH")))
      (ok (text-contains "(#S(HS::S :A 10 :B 20) 7 \"new\" 10" (one-line (first-value image probe))))
      (ok (not-undone-p (undo image) "the structure HS::POINT keeps its new layout, and with it HS::MAKE-POINT"))
      (is equal old (first-value image probe))
      (is equal "3" (first-value image "(hs::point-z (hs::make-point :z 3))")))))

(deftest undo-digest
  (with-image (image)
    (loop for (length digest) in '((0 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
                                   (3 "b361d0f9a938a2bb4fbdc9c21dc5a859788041b0040919d8a811c1888184f4df")
                                   (55 "8af594de0e003fdee5c8bb088216c824349b4137070f559574f4a4bddd27b714") (56 "db81bc2bfd43620591df192139062da77d4c376f1888ea3d2190bd07c8d901f9") (64 "292be91abe8c0909fe3d26575af5755eee74d23816dc68c3ba41765136967654") (100000 "96ad0ddabe9c733d4550fde750255a94806811029be67504bd9bd68e556686b9"))
          do (is equal (format nil "~S" digest)
                 (first-value image (format nil "(consort::digest-of-octets (let ((octets (make-array ~D :element-type '(unsigned-byte 8)))) (dotimes (i ~:*~D octets) (setf (aref octets i) (mod (* 7 i) 251)))))" length))))))

(deftest undo-fasl-of-another-content
  (with-image (image)
    (let ((source (write-file "bound.lisp" "(defun from-bound () :bound)")) (fasl (concatenate 'string *scratch* "bound.fasl")))
      (evaluated image (format nil "(compile-file ~S)" source))
      (is equal "FILE_CHANGED" (path (outcome-of image "load-fasl" "path" fasl "digest" (make-string 64 :initial-element #\0)) "failure" "type"))
      (is equal "NIL" (first-value image "(fboundp 'from-bound)"))
      (let ((digest (string-trim "\"" (first-value image (format nil "(consort::digest-of-file ~S)" fasl)))))
        (ok (reloaded-p (outcome-of image "load-fasl" "path" fasl "digest" digest)))))))

(deftest undo-leaves-values-that-the-reload-left
  (with-image (image)
    (compile-string image "(defvar *moved* 1) (defvar *declared*) (defparameter *set* 1)")
    (ok (listed (compile-string image "(defparameter *set* 2)

 (defvar *declared*) (defvar *moved* 1)") "redefined" "variable COMMON-LISP-USER::*MOVED*"))
    (evaluated image "(setf *moved* :since *declared* :also)")
    (ok (not-undone-p (undo image)))
    (is equal "(:SINCE :ALSO 1)" (first-value image "(list *moved* *declared* *set*)"))))
