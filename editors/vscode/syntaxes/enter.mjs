// Enter, at the first keystroke: where the line's first list is still open and everything behind it
// is closed, the next line stands where Lisp has it. VS Code does this by itself, before the server
// has been asked; what needs more than one line is the formatter's (src/typing.ts).

/** Text whose parentheses are closed, so many of them within each other. */
const closed = (depth) => String.raw`(?:[^()";\\]|\\.|"(?:[^"\\]|\\.)*"${depth === 0 ? '' : String.raw`|\(${closed(depth - 1)}\)`})*`
const REST = `${closed(4)}$`
const BODY = [
  String.raw`def(?!ault\b)[^\s()]*`, String.raw`let\*?`, 'when', 'unless', 'lambda', String.raw`do\*?`, 'dolist', 'dotimes', 'progn', 'prog1', 'block', 'locally', 'c?case', 'ecase',
  'typecase', 'etypecase', 'unwind-protect', 'eval-when', 'handler-case', 'handler-bind', 'restart-case', 'destructuring-bind', 'multiple-value-bind',
  'flet', 'labels', 'macrolet', 'symbol-macrolet', String.raw`(?:with|do|when)-[^\s()]*`, String.raw`if-let[^\s()]*`,
].join('|')
/** The longest name of a function below whose first argument the next ones stand. */
const LONGEST = 16

const rule = (beforeText, columns) => ({ beforeText, action: { indent: 'none', appendText: ' '.repeat(columns) } })

/** `onEnterRules` of the language configuration. */
export const enter = [
  { beforeText: String.raw`^\s*;;;+ \S.*$`, action: { indent: 'none', appendText: ';;; ' } },
  rule(String.raw`^\s*\((?:${BODY})(?:\s${closed(4)})?$`, 2),
  // Among the bindings of LET.
  rule(String.raw`^\s*\(let \(${REST}`, 6),
  rule(String.raw`^\s*\(let\* \(${REST}`, 7),
  ...Array.from({ length: LONGEST }, (_, index) => rule(String.raw`^\s*\([^\s()"';${'`'},]{${index + 1}} (?=\S)${REST}`, index + 3)),
]
