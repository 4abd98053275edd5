;;;; The table of programs: tests/programs/*.check, each a program with the diagnostics that its
;;;; check must give, as carets under the source.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-programs.lisp
;;;;
;;;; CONSORT_ACCEPT=1 writes what is found into the files, to be read with care;
;;;; CONSORT_TEST_NAMES="NAME..." takes those whose name has one of the NAMEs.
;;;;
;;;; A file begins with lines ";;; key: value" (see OPTIONS-OF), then comes the program. A line of
;;;; carets, a severity, a code and a message is what is expected of the line above. Where an SBCL
;;;; says it differently, ";;; ==== SBCL 2.5" begins the same once more for versions that begin so.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun split-lines (text)
  "The lines of TEXT, at newlines."
  (loop with start = 0
        for end = (position #\Newline text :start start)
        collect (subseq text start end)
        while end do (setf start (1+ end))))

(defparameter *severities* '("ERROR" "WARNING" "STYLE-WARNING" "NOTE" "INFORMATION"))

(defun expectation-p (line)
  "Returns true if LINE is carets and a severity."
  (let* ((start (position-if-not (lambda (c) (member c '(#\Space #\Tab))) line))
         (end (and start (char= (char line start) #\^) (position-if-not (lambda (c) (member c '(#\^ #\.))) line :start start))))
    (and end (char= (char line end) #\Space)
         (member (subseq line (1+ end) (position #\Space line :start (1+ end))) *severities* :test #'string=))))

(defun join-lines (lines)
  (format nil "~{~A~^~%~}" lines))

(defun options-of (lines)
  "The options in the lines \";;; key: value\" that LINES begin with, as an alist, and the rest of
  LINES."
  (loop for rest on lines
        for line = (first rest)
        for colon = (and (eql 0 (search ";;; " line)) (search ": " line))
        while colon
        collect (cons (subseq line 4 colon) (subseq line (+ colon 2))) into options
        finally (return (values options rest))))

(defun versions-of (lines)
  "LINES cut at \";;; ==== SBCL version\": an alist from version, NIL for the first, to lines."
  (loop with version = nil and body = '() and all = '()
        for line in lines
        do (cond ((eql 0 (search ";;; ==== SBCL " line))
                  (push (cons version (reverse body)) all)
                  (setf version (subseq line 14) body '()))
                 (t (push line body)))
        finally (push (cons version (reverse body)) all)
                (return (reverse all))))

(defun line-starts (text)
  (cons 0 (loop for i from 0 below (length text) when (char= (char text i) #\Newline) collect (1+ i))))

(defun rendering (text diagnostics)
  "The lines of TEXT, and under each what DIAGNOSTICS say of it."
  (let ((starts (line-starts text)))
    (flet ((line-at (position) (1- (count-if (lambda (start) (<= start position)) starts))))
      (loop for line in (split-lines text)
            for number from 0
            for start in starts
            collect (remove #\Return line)
            append (loop for diagnostic in diagnostics
                         for (from to) = (coerce (field diagnostic "span") 'list)
                         when (= number (line-at from))
                           collect (let* ((column (- from start))
                                          (end (min to (+ start (length (string-right-trim '(#\Return) line)))))
                                          (related (map 'list (lambda (r) (let ((at (aref (field r "span") 0)))
                                                                            (format nil "~A (line ~D)" (field r "message") (1+ (line-at at)))))
                                                        (field diagnostic "related" #()))))
                                     (format nil "~A~A~:[~;...~] ~A ~A: ~A~{ [~A]~}"
                                             (map 'string (lambda (c) (if (char= c #\Tab) #\Tab #\Space)) (subseq line 0 (min column (length line))))
                                             (make-string (max 1 (- end from)) :initial-element #\^)
                                             (> to (+ start (length line)))
                                             (string-upcase (field diagnostic "severity"))
                                             (field diagnostic "code")
                                             (field diagnostic "message")
                                             related)))))))

(defun rendered-check (text options &key warm)
  "TEXT as the check with OPTIONS marks it, as lines; WARM: by a copy that was made before."
  (flet ((option (name) (cdr (assoc name options :test #'string=))))
    (let ((text (if (equal (option "lines") "crlf")
                    (format nil "~{~A~^~C~%~}" (loop for (line . more) on (split-lines text)
                                                     append (if more (list line #\Return) (list line))))
                    text)))
      (multiple-value-bind (lines code signal)
          (check-lines (coerce text '(simple-array character (*)))
                       :path (and (not (equal (option "mode") "form"))
                                  (concatenate 'string (uiop:native-namestring (merge-pathnames "../../tests/programs/" *tests-directory*))
                                               (or (option "path") "program.lisp")))
                       :mode (or (option "mode") "file")
                       :package (option "package")
                       :notes (option "notes")
                       :unreachable (option "unreachable")
                       :warm warm)
        (if (and (eql code 0) (null signal))
            (rendering text (diagnostics-of lines))
            (list (format nil "the copy ended with code ~A, signal ~A" code signal)))))))

(defun expected-here (versions)
  "Returns the lines of VERSIONS that this SBCL must give."
  (cdr (or (loop for entry in (rest versions)
                 when (eql 0 (search (car entry) (lisp-implementation-version))) return entry)
           (first versions))))

(defun accept (file option-lines versions lines)
  "Write LINES into FILE as what this SBCL must give."
  (let ((short (subseq (lisp-implementation-version) 0 (position #\. (lisp-implementation-version) :start 2)))
        (main (eql 0 (search "2.2" (lisp-implementation-version)))))
    (if main
        (setf (cdr (first versions)) lines)
        (progn
          (setf versions (remove short versions :key #'car :test #'equal))
          (unless (equal lines (cdr (first versions)))
            (setf versions (append versions (list (cons short lines)))))))
    (with-open-file (out file :direction :output :if-exists :supersede :external-format :utf-8)
      (write-string (join-lines (append option-lines
                                        (loop for (version . body) in versions
                                              append (if version (cons (format nil ";;; ==== SBCL ~A" version) body) body))))
                    out))))

(defun report-difference (file what expected found)
  "Tells that WHAT gave FOUND for the program of FILE, and not EXPECTED, and how to run it alone."
  (format t "~&FAILED ~A: ~A should give~%~A~%and gives~%~A~%Alone: lisp/tests/run.sh ~A programs ~A~%"
          (pathname-name file) what (join-lines expected) (join-lines found)
          (or (sb-posix:getenv "CONSORT_TEST_SBCL_NAME") "sbcl") (pathname-name file)))

(defun run-program (file)
  (let* ((lines (split-lines (slurp file)))
         (body (nth-value 1 (options-of lines)))
         (options (options-of lines))
         (versions (versions-of body))
         (text (join-lines (remove-if #'expectation-p (cdr (first versions)))))
         (found (rendered-check text options))
         (expected (expected-here versions)))
    (cond ((equal found expected))
          ((plusp (length (sb-posix:getenv "CONSORT_ACCEPT")))
           (accept file (ldiff lines body) versions found)
           (format t "~&accepted ~A~%" (pathname-name file)))
          (t
           (count-failure "it gives something else")
           (report-difference file "the check" expected found)))
    (let ((again (rendered-check text options :warm t)))
      (unless (equal again found)
        (count-failure "a warm copy gives something else")
        (report-difference file "the check in a warm copy" found again)))))

(let ((files (directory (merge-pathnames "../../tests/programs/*.check" *tests-directory*))))
  (expect (>= (length files) 60) "there are at least 60 programs")
  (dolist (file files)
    (test (pathname-name file) (run-program file)))
  (finish-tests (format nil "~D programs" (length files))))
