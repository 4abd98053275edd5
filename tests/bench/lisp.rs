//! The baselines of the measurements: plain `compile-file` in a warm image, and Swank.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// An SBCL process of its own that answers each line with a line, and exits when its input ends.
pub(crate) struct Lisp {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Lisp {
    /// Evaluates each form of `setup` first. `answer` is a lambda expression that is called with
    /// each line; its value is printed.
    fn start(setup: &[&str], answer: &str, directory: &Path) -> Result<Lisp> {
        let answering = format!(
            "(let ((answer {answer}))
               (format *out* \"ready~%\") (finish-output *out*)
               (loop for line = (read-line *standard-input* nil) while line
                     do (format *out* \"~A~%\" (funcall answer line)) (finish-output *out*)))"
        );
        // Nothing but the answers may go to descriptor 1.
        let quiet = "(progn (defvar *out* (sb-sys:make-fd-stream 1 :output t :buffering :full))
                            (setf *standard-output* (make-broadcast-stream) *error-output* *standard-output*))";
        let mut command = Command::new("sbcl");
        command.args([
            "--noinform",
            "--no-userinit",
            "--disable-debugger",
            "--eval",
            quiet,
            "--eval",
            "(require :asdf)",
        ]);
        for form in setup.iter().copied().chain([answering.as_str()]) {
            command.args(["--eval", form]);
        }
        let mut child = command
            .arg("--quit")
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start sbcl")?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("a child without standard output")?);
        let mut lisp = Lisp { child, stdin, stdout };
        ensure!(lisp.line()? == "ready", "the Lisp to compare with did not start");
        Ok(lisp)
    }

    /// Starts a warm image with the systems of `directory` loaded, which answers a file's path with
    /// the milliseconds that `compile-file` took.
    pub(crate) fn compiler(directory: &Path, systems: &[&str]) -> Result<Lisp> {
        let names: Vec<String> = systems.iter().map(|system| format!("{system:?}")).collect();
        let setup = [
            "(asdf:initialize-source-registry `(:source-registry (:tree ,(truename \".\")) :ignore-inherited-configuration))",
            &format!("(mapc 'asdf:load-system '({}))", names.join(" ")),
            "(defvar *fasl* (merge-pathnames \"plain.fasl\" (truename \".\")))",
            // SBCL's get-internal-real-time may be as coarse as 4 ms.
            "(defun now () (multiple-value-bind (seconds microseconds) (sb-ext:get-time-of-day) (+ (* 1d3 seconds) (/ microseconds 1d3))))",
        ];
        let answer = "(lambda (path)
               (let ((start (now)))
                 (compile-file path :output-file *fasl*)
                 (prog1 (format nil \"~,3F\" (- (now) start))
                   (delete-file *fasl*))))";
        Lisp::start(&setup, answer, directory)
    }

    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let stdin = self.stdin.as_mut().context("the Lisp to compare with has ended")?;
        writeln!(stdin, "{line}")?;
        stdin.flush()?;
        self.line()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stdout.read_line(&mut line)? > 0, "the Lisp to compare with has ended");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Lisp {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a Swank server, as SLIME has one.
pub(crate) struct Swank {
    stream: TcpStream,
    last: u64,
    _lisp: Lisp,
}

impl Swank {
    pub(crate) fn start(directory: &Path) -> Result<Swank> {
        let setup = [
            "(asdf:load-system \"swank\")",
            "(defvar *port* (swank:create-server :port 0 :dont-close t :style :spawn))",
        ];
        let mut lisp = Lisp::start(&setup, "(lambda (line) (declare (ignore line)) *port*)", directory)?;
        let port: u16 = lisp.ask("port")?.parse().context("Swank did not tell its port")?;
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Swank { stream, last: 0, _lisp: lisp })
    }

    /// The request that SLIME sends for `slime-eval-and-grab-output`.
    pub(crate) fn eval(&mut self, code: &str) -> Result<String> {
        let quoted = code.replace('\\', "\\\\").replace('"', "\\\"");
        self.ask(&format!("(swank:eval-and-grab-output \"{quoted}\")"))
    }

    /// Has Swank evaluate `form`, as SLIME does.
    pub(crate) fn ask(&mut self, form: &str) -> Result<String> {
        self.last += 1;
        let message = format!("(:emacs-rex {form} \"COMMON-LISP-USER\" t {})", self.last);
        self.stream.write_all(format!("{:06x}{message}", message.len()).as_bytes())?;
        loop {
            let mut header = [0; 6];
            self.stream.read_exact(&mut header)?;
            let mut body = vec![0; usize::from_str_radix(std::str::from_utf8(&header)?, 16)?];
            self.stream.read_exact(&mut body)?;
            let answer = String::from_utf8(body)?;
            if answer.starts_with("(:return ") {
                if !answer.starts_with("(:return (:ok ") {
                    bail!("Swank answered {answer}");
                }
                return Ok(answer);
            }
        }
    }
}
