;;;; Signals that would end the image, or stop it for ever, although nobody sends them for that: of
;;;; a terminal that is closed, of timers, of a file that has become too large, and SIGUSR2, by
;;;; which SBCL stops its threads for a collection. Without a handler of the program's, they do
;;;; nothing.

(in-package :consort)

(defparameter *stray-signals* (list sb-posix:sighup sb-posix:sigxfsz sb-posix:sigvtalrm #+linux 29)
  "Signals for which SBCL has no handler; 29 is SIGIO. Other such signals are blocked
  (*AWAITED-SIGNALS*), are sent to end a process, as SIGQUIT and SIGXCPU are, or are those of a
  profiler.")

(defparameter *rt-sigaction* '(rt_sigaction 13 134) "The system call, as NUMBER-HERE takes it.")

(defun call-with-action (signal function)
  "Calls FUNCTION with the kernel's struct sigaction of SIGNAL, as octets. Its first word is the
  handler. Returns the value of FUNCTION; NIL if the action is not known."
  #+linux (with-octets (action (0 0 0 0))
            (when (zerop (system-call (number-here *rt-sigaction*) signal 0 action 8))
              (funcall (the function function) action)))
  #-linux (progn signal function nil))

(defun ignored-signal-p (signal)
  "Returns true if this process ignores SIGNAL, as after `nohup`. Programs that it starts inherit
  that."
  (call-with-action signal (lambda (action) (= 1 (sap-word (int-sap action) 0)))))

(defun ignore-stray-signals ()
  "Makes the *STRAY-SIGNALS* do nothing in this process. They get a handler, because programs that
  the image starts would inherit :IGNORE. A signal that is ignored already stays so."
  (dolist (signal (remove-if #'ignored-signal-p *stray-signals*))
    (enable-interrupt signal (lambda (signal info context) (declare (ignore signal info context)))))
  #+(and linux x86-64) (ignore-stray-stops))

#+(and linux x86-64)
(progn

(defconstant +sigusr2+ 12)
(defun code-of-stop-filter (handler)
  "Machine code of a signal handler that calls the one at the address HANDLER only for a signal that
  was sent to a thread (SI_TKILL), as SBCL's own are. One that was sent to the process returns."
  (append '(#x83 #x7e #x08 #xfa         ; cmp dword ptr [rsi+8], SI_TKILL    si_code
            #x75 #x0c                   ; jne 18
            #x48 #xb8)                  ; mov rax, HANDLER
          (loop for position from 0 below 64 by 8 collect (ldb (byte 8 position) handler))
          '(#xff #xe0                   ; jmp rax
            #xc3)))                     ; 18: ret

(defun executable-code (octets)
  "The address of a page of memory that has OCTETS, machine code; NIL if the system allows none."
  (let ((page (handler-case (sb-posix:mmap nil 4096 (logior sb-posix:prot-read sb-posix:prot-write)
                                           (logior sb-posix:map-private sb-posix:map-anon) -1 0)
                (sb-posix:syscall-error () (return-from executable-code nil)))))
    (loop for octet in octets for i from 0 do (setf (sap-8 page i) octet))
    (and (zerop (system-call (number-here '(mprotect 10 226)) (sap-integer page) 4096 (logior sb-posix:prot-read sb-posix:prot-exec)))
         (sap-integer page))))

(defun ignore-stray-stops ()
  "Makes a SIGUSR2 from outside do nothing. SBCL's handler would stop the thread that gets it, which
  is mostly the one that serves the host, until another thread happens to collect garbage. The new
  handler is not a Lisp function, because SBCL cannot call one where it stops a thread. A system
  that allows no such code is left as it is."
  (call-with-action +sigusr2+
                    (lambda (action)
                      (let* ((handler (sap-word (int-sap action) 0))
                             (filter (and (> handler 1) ; SIG_DFL, SIG_IGN
                                          (executable-code (code-of-stop-filter handler)))))
                        (when filter
                          (setf (sap-word (int-sap action) 0) filter)
                          (system-call (number-here *rt-sigaction*) +sigusr2+ action 0 8))))))

) ; #+(and linux x86-64)
