// The indentation of a new line, from the text above it alone: for the moments in which the server
// does not answer at once. The server's own rules (server/src/ide/format) know the macros of the
// text and of the image too. No `vscode` here.
import { read, type Form } from './reader.js'

/** The operators with a body, each with the number of arguments before it. */
const BODIES: Record<string, number> = {
  block: 1, case: 1, catch: 1, ccase: 1, ctypecase: 1, defclass: 2, defgeneric: 2, 'define-condition': 2, defmacro: 2, defmethod: 2, deftype: 2, defun: 2,
  'destructuring-bind': 2, do: 2, 'do*': 2, dolist: 1, dotimes: 1, ecase: 1, etypecase: 1, 'eval-when': 1, flet: 1, 'handler-bind': 1,
  'handler-case': 1, labels: 1, lambda: 1, let: 1, 'let*': 1, locally: 0, macrolet: 1, 'multiple-value-bind': 2, 'multiple-value-prog1': 1, prog1: 1,
  progn: 0, progv: 2, 'restart-case': 1, 'symbol-macrolet': 1, typecase: 1, unless: 1, 'unwind-protect': 1, when: 1, 'with-accessors': 2, 'with-slots': 2,
}
const LOCAL_FUNCTIONS = /^(?:flet|labels|macrolet)$/

/**
 * The number of arguments before the body of an operator; undefined for one that is indented as a
 * function.
 */
function bodyOf(name: string): number | undefined {
  if (Object.hasOwn(BODIES, name)) return BODIES[name]
  return /^(?:def(?!ault$)|with-|do-|when-|if-let)/.test(name) ? 1 : name.startsWith('without-') ? 0 : undefined
}

/**
 * The indentation, in columns, of the line that begins at `offset`; undefined inside of strings and
 * comments, where lines are not indented.
 */
export function indentation(text: string, offset: number): number | undefined {
  // From the last line that begins a top-level form, so that a long file costs no more than its
  // last form.
  let begin = offset
  do begin = text.lastIndexOf('\n', begin - 1)
  while (begin > 0 && text.charAt(begin + 1) !== '(')
  const part = text.slice(begin + 1, offset)
  const reading = read(part)
  if (reading.inside === 'string' || reading.inside === 'comment') return undefined
  if (reading.open.length === 0) return 0
  const lists: Form[] = []
  for (let level = reading.forms; ; ) {
    const last = level.at(-1)
    if (last === undefined || !reading.open.includes(last.start)) break
    lists.push(last)
    level = last.children
  }
  const list = lists.at(-1)
  if (list === undefined) return 0
  const column = (at: number): number => at - (part.lastIndexOf('\n', at - 1) + 1)
  const paren = part.indexOf('(', list.start)
  const [head, first] = list.children
  if (head === undefined) return column(paren) + 1
  const operator = (form: Form | undefined): string => {
    const head = form?.children[0]
    return head?.kind === 'atom' ? part.slice(head.start, head.end).toLowerCase().replace(/^.*:(?=.)/, '') : ''
  }
  const quoted = paren > list.start && part.charAt(list.start) === "'"
  if (head.kind !== 'atom' || quoted) return column(head.start)
  const name = operator(list)
  const local = LOCAL_FUNCTIONS.test(operator(lists.at(-3))) && lists.at(-3)?.children[1] === lists.at(-2)
  const body = local ? 1 : bodyOf(name)
  if (body !== undefined) return column(paren) + (list.children.length - 1 < body ? 4 : 2)
  const besideHead = first !== undefined && !part.slice(head.end, first.start).includes('\n')
  return besideHead ? column(first.start) : column(paren) + 1
}
