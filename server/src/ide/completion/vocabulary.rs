//! Words that have a meaning only at certain places, which the image's symbols do not show:
//! declaration identifiers, lambda list keywords, and options of definitions.

/// Declaration identifiers (CLHS 3.3.3) and qualities of `optimize`.
pub(in crate::ide) const DECLARATIONS: &str = "ignore ignorable type ftype inline notinline special optimize dynamic-extent declaration speed safety debug \
     space compilation-speed";

/// Lambda list keywords (CLHS 3.4).
pub(in crate::ide) const LAMBDA_LIST: &str = "&optional &rest &key &body &aux &allow-other-keys &environment &whole";

/// Returns the options of a definition or clause, by its operator.
pub(in crate::ide) fn options(operator: &str) -> &'static str {
    match operator {
        "defclass" => {
            ":initarg :initform :accessor :reader :writer :type :documentation :allocation :default-initargs :metaclass :class"
        }
        "define-condition" => {
            ":initarg :initform :accessor :reader :writer :type :documentation :report :default-initargs"
        }
        "defstruct" => {
            ":conc-name :constructor :copier :predicate :include :print-function :print-object :type :named :initial-offset :read-only"
        }
        "defgeneric" => {
            ":documentation :method :method-combination :argument-precedence-order :generic-function-class :method-class"
        }
        "defmethod" => ":before :after :around",
        "defpackage" | "define-package" => {
            ":use :export :import-from :nicknames :shadow :shadowing-import-from :local-nicknames :documentation :intern \
             :lock :implement :mix :reexport :use-reexport :unintern :recycle"
        }
        "defsystem" => {
            ":depends-on :components :serial :pathname :version :author :license :description :long-description \
             :maintainer :homepage :bug-tracker :source-control :mailto :in-order-to :perform :file :module \
             :static-file :defsystem-depends-on :class :around-compile :encoding :if-feature :entry-point \
             :build-operation :build-pathname :weakly-depends-on :feature :test-op :load-op :compile-op"
        }
        "eval-when" => ":compile-toplevel :load-toplevel :execute",
        "restart-case" | "restart-bind" => {
            ":report :interactive :test :report-function :interactive-function :test-function"
        }
        "with-open-file" => {
            ":direction :element-type :if-exists :if-does-not-exist :external-format :input :output :io :supersede :create :append"
        }
        "defsetf" | "define-method-combination" => {
            ":arguments :documentation :operator :identity-with-one-argument :order :required :description"
        }
        "deftest" | "def-test" => ":depends-on :suite :fixture :compile-at :profile",
        _ => "",
    }
}
