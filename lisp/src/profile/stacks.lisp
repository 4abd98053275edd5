;;;; The stack of a thread at a signal, as names of functions. The frames of the machine are read,
;;;; because the debugger would miss the callers of assembler routines and of foreign code, which
;;;; have no frame that it knows, and would take too long for a sample.

(in-package :consort)

(defconstant +stack-depth+ 400 "The maximum number of frames of a sample, from the innermost.")
(defconstant +foreign-words+ 4096 "The maximum number of words of foreign code's frames that are
  searched for the Lisp code that called it.")

(deftype word-integer () '(unsigned-byte 64))

(defun frames-readable-p ()
  "Returns true if the frames of this machine have the layout that READ-FRAMES expects."
  (and (internal-p 'stack-register) (internal-p 'frame-register) (internal-p 'code-from-pc)))

(defun word-at (address)
  (declare (type word-integer address))
  (sap-word (int-sap address) 0))

(defun lisp-code-at (pc)
  "The Lisp function's code that contains PC, or NIL."
  (declare (type word-integer pc))
  (and (< pc (ash 1 47))
       (let ((code (code-from-pc (int-sap pc))))
         (and code (not (eq code assembler-routines)) code))))

(defun push-frame (code pc frames count)
  "Notes in FRAMES, at COUNT, that PC is in CODE. Lisp code may move later, so the offset in it is
  kept. If CODE is NIL, PC itself is kept."
  (setf (svref frames count) code
        (svref frames (1+ count)) (if code (- pc (the word-integer (sap-integer (code-start code)))) pc)))

(defun plausible-frame-p (pointer above end)
  "Returns true if the word POINTER may point to a frame that is further out than ABOVE on the stack
  that ends at END."
  (and (> pointer above) (< pointer (- end 16)) (zerop (logand pointer 7))))

(defun behind-call-p (place)
  "Returns true if the instruction before PLACE, in Lisp code, is a call that does not call a Lisp
  function. Such calls are E8 or FF 15 and four bytes, or FF 14 25 and four bytes. Before a call of
  a Lisp function, the frame pointer is set (8B EC). Places after calls of Lisp functions may be
  remains on the stack of frames that no longer exist."
  (flet ((octet (before) (ldb (byte 8 0) (word-at (- place before)))))
    (flet ((without-frame-p (length)
             (not (and (= (octet (+ length 2)) #x8B) (= (octet (+ length 1)) #xEC)))))
      (cond ((= (octet 5) #xE8) (without-frame-p 5))
            ((and (= (octet 6) #xFF) (= (octet 5) #x15)) (without-frame-p 6))
            ((and (= (octet 7) #xFF) (= (octet 6) #x14) (= (octet 5) #x25)) (without-frame-p 7))))))

(defun calling-place (stack end)
  "Returns the address of the first word from STACK on that is a return address in Lisp code, where
  Lisp called foreign code; NIL if there is none."
  (loop for address from stack below (min (- end 8) (+ stack (* 8 +foreign-words+))) by 8
        for place = (word-at address)
        when (and (lisp-code-at place) (behind-call-p place)) return address))

(defun frame-beyond (pointer address end)
  "The first frame beyond ADDRESS in the chain from POINTER. If foreign code has used the register
  for something else, the first pair of words beyond ADDRESS that looks like a frame."
  (loop while (plausible-frame-p pointer (- address (* 8 +foreign-words+)) end)
        when (> pointer address) return (return-from frame-beyond pointer)
        do (let ((next (word-at pointer)))
             (if (> next pointer) (setf pointer next) (return))))
  (loop for at from (+ address 8) below (min (- end 16) (+ address (* 8 +foreign-words+))) by 8
        when (and (plausible-frame-p (word-at at) at end) (lisp-code-at (word-at (+ at 8))))
          return at))

(defun caller-on-stack (pc stack frame end)
  "Two values: the place where Lisp called the function at PC, and the caller's frame. NIL if that
  place is not on top of the stack. It is there at a function's last instructions (F8 C3), where the
  frame is already the caller's, and at the first instruction (8F 45 08), which moves the place to
  the frame that the caller has made."
  (declare (type word-integer pc stack frame end))
  (let ((place (word-at stack))
        (instruction (word-at pc)))
    (when (lisp-code-at place)
      (cond ((or (= (ldb (byte 8 0) instruction) #xC3) (= (ldb (byte 16 0) instruction) #xC3F8))
             (values place frame))
            ((and (= (ldb (byte 24 0) instruction) #x08458F) (plausible-frame-p frame (- stack 8) end))
             (values place (word-at frame)))))))

(defun read-frames (sap frames)
  "Writes the stack of the thread that a signal interrupted, from the context at SAP, to FRAMES,
  innermost first, with two elements a frame. Returns the number of elements."
  (let* ((context (signal-context sap))
         (pc (sap-integer (context-pc context)))
         (stack (logandc2 (context-register context stack-register) 7))
         (frame (context-register context frame-register))
         (end (sap-integer (thread-slot stack-end-slot)))
         (code (lisp-code-at pc))
         (count 2))
    (declare (type word-integer pc stack frame end))
    (push-frame code pc frames 0)
    (if code
        (multiple-value-bind (place beyond) (caller-on-stack pc stack frame end)
          (when place
            (push-frame (lisp-code-at place) place frames count)
            (incf count 2)
            (setf frame beyond
                  stack (+ stack 8))))
        ;; Neither an assembler routine nor foreign code has a frame of Lisp's.
        (let ((called-from (calling-place stack end)))
          (unless called-from (return-from read-frames count))
          (let ((place (word-at called-from)))
            (push-frame (lisp-code-at place) place frames count)
            (incf count 2))
          (setf frame (or (frame-beyond frame called-from end) 0)
                stack called-from)))
    (loop while (and (plausible-frame-p frame (- stack 8) end) (< count (length frames)))
          do (let ((place (word-at (+ frame 8))))
               (push-frame (lisp-code-at place) place frames count)
               (incf count 2)
               (setf stack (+ frame 8)
                     frame (word-at frame))))
    count))

;;; Names

(defun place-name (code offset leaf)
  "The name of the function that contains OFFSET of CODE, or, without CODE, of the code at the
  address OFFSET. LEAF is true for the innermost frame. In the others, the place is after a call."
  (handler-case
      (cond (code (%debug-function-name (debug-function-at code (if leaf offset (1- offset)))))
            ((assembler-name offset))
            ((foreign-symbol-at (int-sap offset))
             (format nil "foreign function ~A" (foreign-symbol-at (int-sap offset))))
            (t "foreign function"))
    (error () "unknown function")))

(defun assembler-name (address)
  (let ((code (code-from-pc (int-sap address))))
    (and (eq code assembler-routines) (assembler-routine-at address))))

(defun stack-names (frames)
  "The names of the functions of a sample, innermost first."
  (loop for index from 0 below (length frames) by 2
        collect (place-name (svref frames index) (svref frames (1+ index)) (zerop index))))

(defun own-name-p (name)
  (let ((symbol (frame-symbol (list name))))
    (and symbol (eq (symbol-package symbol) (load-time-value (find-package "CONSORT"))))))

(defun names-of-user (names)
  "NAMES, innermost first, without the frames that called the user's code: those of Consort, and
  those of the evaluator that ran the form."
  (let* ((ours (position-if #'own-name-p names))
         (user (if ours (subseq names 0 ours) names))
         (last (position-if-not (lambda (name) (member name *evaluator-frames*)) user :from-end t)))
    (cond ((null user) '())
          ((null last) (last user)) ; in the evaluator itself
          (t (subseq user 0 (1+ last))))))

(defun name-text (name)
  "NAME as seen from the current package."
  (let ((package *package*))
    (if (stringp name)
        name
        (with-terse-printing ()
          (let ((*package* package) (*print-pretty* nil))
            (if (equal name '(lambda ())) "(top-level form)" (text-of (print-safely name 300 #'prin1))))))))
