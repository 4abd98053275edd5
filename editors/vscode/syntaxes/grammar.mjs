// The TextMate grammar for Common Lisp, as data. `npm run build` writes it to
// commonlisp.tmLanguage.json, which is what VS Code reads.
//
// Lists are balanced rules, so that what is special inside one operator (the directives in a
// `format` string, the keywords of
// `loop`) ends with its list. Nothing depends on the balance being right: outside of those, a list
// means what `$self` means.
import { FUNCTIONS, OPERATORS } from './names.mjs'

const escape = (name) => name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
/**
 * A pattern for exactly these names, with common beginnings shared: it is compiled for each kind of
 * list, and VS Code waits for that.
 */
function anyOf(names) {
  const root = new Map()
  for (const name of names) {
    let node = root
    for (const letter of name) node = node.get(letter) ?? node.set(letter, new Map()).get(letter)
    node.set('', null)
  }
  const pattern = (node) => {
    const ways = [...node].filter(([letter]) => letter !== '').map(([letter, next]) => escape(letter) + pattern(next))
    if (ways.length === 0) return ''
    const all = ways.length === 1 && !node.has('') ? ways[0] : `(?:${ways.join('|')})`
    return node.has('') ? `${all}?` : all
  }
  return pattern(root)
}

// Where a token ends: what the standard syntax calls whitespace and terminating macro characters,
// or the end of the line.
const END = '(?=[\\s()"\';`,]|$)'
const BEGIN = '(?<=[\\s()"\'`,@.]|^)'
// A symbol's name: constituents, single escapes and multiple escapes.
const NAME = '(?:[^\\s()"\';`,|\\\\#:]|\\\\.|\\|(?:[^|\\\\]|\\\\.)*\\|)(?:[^\\s()"\';`,|\\\\:]|\\\\.|\\|(?:[^|\\\\]|\\\\.)*\\|)*'
const PREFIX = `(?:(${NAME})(::?))?`
const DEFINERS = {
  function: 'defun|defmacro|defgeneric|defmethod|define-compiler-macro|define-modify-macro|define-setf-expander|defsetf|define-method-combination|deftest|define-test|test',
  type: 'defclass|defstruct|deftype|define-condition',
  variable: 'defvar|defparameter|defconstant|define-symbol-macro|defglobal|define-global-parameter',
  namespace: 'defpackage|in-package|define-package|defsystem',
}
// Operators whose strings are format control strings.
const FORMATTERS =
  'format|error|cerror|warn|signal|break|formatter|assert|check-type|y-or-n-p|yes-or-no-p|invalid-method-error|method-combination-error|simple-style-warning|format-symbol|required-argument|simple-program-error|simple-reader-error'
const LOOP =
  'named|with|for|as|and|in|on|from|upfrom|downfrom|to|upto|downto|below|above|by|across|being|the|each|of|hash-keys?|hash-values?|using|symbols?|present-symbols?|external-symbols?|then|repeat|while|until|always|never|thereis|do|doing|collect|collecting|append|appending|nconc|nconcing|count|counting|sum|summing|maximize|maximizing|minimize|minimizing|into|if|when|unless|else|end|initially|finally|return|it|of-type|='
const scope = (name) => `${name}.commonlisp`
const self = { include: '$self' }

// The first element of a list. The list itself is one rule for all of them.
const HEAD = '(?i)(?<=\\()\\s*'
const definition = (operators, entity) => ({
  match: `${HEAD}${PREFIX}(${operators})(?:\\s+(?:(\\()\\s*(setf|cas)\\s+${PREFIX}(${NAME})\\s*(\\))|[#:']*${PREFIX}(${NAME})|("[^"]*")))?${END}`,
  captures: {
    1: { name: scope('entity.name.namespace') },
    2: { name: scope('punctuation.separator.namespace') },
    3: { name: scope('storage.type.definition') },
    4: { name: scope('punctuation.section.list.begin') },
    5: { name: scope('keyword.control') },
    6: { name: scope('entity.name.namespace') },
    7: { name: scope('punctuation.separator.namespace') },
    8: { name: scope(entity) },
    9: { name: scope('punctuation.section.list.end') },
    10: { name: scope('entity.name.namespace') },
    11: { name: scope('punctuation.separator.namespace') },
    12: { name: scope(entity) },
    13: { name: scope(entity) },
  },
})
const OPERATOR_CAPTURES = (name) => ({
  1: { name: scope('entity.name.namespace') },
  2: { name: scope('punctuation.separator.namespace') },
  3: { name: scope(name) },
})
const operator = (operators, name) => ({
  match: `${HEAD}(?:(cl|common-lisp)(::?))?(${operators})${END}`,
  captures: OPERATOR_CAPTURES(name),
})
// A list in which other things are special than elsewhere.
const special = (operators, name, patterns) => ({
  begin: `(?i)(\\()\\s*(?:(cl|common-lisp)(::?))?(${operators})${END}`,
  beginCaptures: {
    1: { name: scope('punctuation.section.list.begin') },
    2: { name: scope('entity.name.namespace') },
    3: { name: scope('punctuation.separator.namespace') },
    4: { name: scope(name) },
  },
  end: '\\)',
  endCaptures: { 0: { name: scope('punctuation.section.list.end') } },
  patterns,
})
const plainString = (name, inside) => ({
  name: scope(name),
  begin: '"',
  beginCaptures: { 0: { name: scope('punctuation.definition.string.begin') } },
  end: '"',
  endCaptures: { 0: { name: scope('punctuation.definition.string.end') } },
  patterns: inside,
})
const ESCAPE = { name: scope('constant.character.escape'), match: '\\\\.' }
const DELIMITED = (digits) => `${digits}${END}`

export const grammar = {
  name: 'Common Lisp',
  scopeName: 'source.commonlisp',
  fileTypes: ['lisp', 'lsp', 'cl', 'asd', 'ros', 'sexp'],
  patterns: [
    { include: '#comments' },
    { include: '#strings' },
    { include: '#sharpsign' },
    { include: '#quotes' },
    { include: '#lists' },
    { include: '#atoms' },
  ],
  repository: {
    comments: {
      patterns: [
        { name: scope('comment.line.shebang'), match: '\\A#!.*$' },
        { name: scope('comment.line.semicolon'), match: ';.*$' },
        { include: '#block-comment' },
      ],
    },
    'block-comment': {
      name: scope('comment.block'),
      begin: '#\\|',
      end: '\\|#',
      patterns: [{ include: '#block-comment' }],
    },
    strings: plainString('string.quoted.double', [ESCAPE]),
    'format-string': plainString('string.quoted.double.format', [
      ESCAPE,
      {
        name: scope('constant.other.placeholder.format'),
        match: "~(?:(?:[+-]?\\d+|'.|[vV#])?(?:,(?:[+-]?\\d+|'.|[vV#])?)*)?[:@]*(?:/[^/\"]+/|[a-zA-Z%&|~<>{}\\[\\]();^?*_]|$)",
      },
    ]),
    sharpsign: {
      patterns: [
        {
          name: scope('constant.character'),
          match: '#\\\\(?:[^\\s()"\'`;,|\\\\][^\\s()"\'`;,|\\\\]*|.)',
        },
        {
          match: `(?i)(#[+-])\\s*(:?${NAME})?`,
          captures: {
            1: { name: scope('keyword.control.conditional.reader') },
            2: { name: scope('constant.other.feature') },
          },
        },
        { name: scope('constant.numeric.binary'), match: DELIMITED('(?i)#b[+-]?[01]+(?:/[01]+)?') },
        { name: scope('constant.numeric.octal'), match: DELIMITED('(?i)#o[+-]?[0-7]+(?:/[0-7]+)?') },
        { name: scope('constant.numeric.hex'), match: DELIMITED('(?i)#x[+-]?[0-9a-f]+(?:/[0-9a-f]+)?') },
        { name: scope('constant.numeric.radix'), match: DELIMITED('(?i)#\\d+r[+-]?[0-9a-z]+(?:/[0-9a-z]+)?') },
        { name: scope('constant.other.bit-vector'), match: DELIMITED('#\\d*\\*[01]*') },
        { name: scope('constant.other.label'), match: '#\\d+[=#]' },
        {
          match: `(#:)(${NAME})`,
          captures: {
            1: { name: scope('punctuation.definition.symbol.uninterned') },
            2: { name: scope('constant.other.symbol.uninterned') },
          },
        },
        {
          match: `(#')${PREFIX}(${NAME})?`,
          captures: {
            1: { name: scope('keyword.operator.function') },
            2: { name: scope('entity.name.namespace') },
            3: { name: scope('punctuation.separator.namespace') },
            4: { name: scope('variable.function') },
          },
        },
        { name: scope('keyword.operator.read-eval'), match: '#\\.' },
        { name: scope('storage.type.literal'), match: '(?i)#(?:\\d*a|c|p|s|\\d*)(?=[("])' },
        { name: scope('storage.type.literal'), match: '(?i)#p(?=")' },
      ],
    },
    quotes: {
      patterns: [
        { name: scope('keyword.operator.quote'), match: "'" },
        { name: scope('keyword.operator.backquote'), match: '`' },
        { name: scope('keyword.operator.unquote'), match: ',[@.]?' },
      ],
    },
    lists: {
      patterns: [
        special(FORMATTERS, 'support.function.format', [{ include: '#format-string' }, self]),
        special('loop', 'keyword.control', [
          { name: scope('keyword.control.loop'), match: `(?i)${BEGIN}:?(?:${LOOP})${END}` },
          self,
        ]),
        special('declare|declaim|proclaim', 'storage.modifier.declaration', [
          operator(
            'type|ftype|inline|notinline|ignore|ignorable|dynamic-extent|special|optimize|declaration|sb-ext:muffle-conditions',
            'storage.modifier.declaration',
          ),
          // Nested, so that the lists in it know the same.
          { begin: '\\(', end: '\\)', patterns: [
            operator(
              'type|ftype|inline|notinline|ignore|ignorable|dynamic-extent|special|optimize|declaration|sb-ext:muffle-conditions',
              'storage.modifier.declaration',
            ),
            self,
          ] },
        ]),
        // The name in `(defstruct (name ...` stands in a list of its own.
        {
          begin: `${HEAD}${PREFIX}(defstruct)\\s+(\\()\\s*(${NAME})`,
          beginCaptures: {
            ...OPERATOR_CAPTURES('storage.type.definition'),
            4: { name: scope('punctuation.section.list.begin') },
            5: { name: scope('entity.name.type.class') },
          },
          end: '\\)',
          endCaptures: { 0: { name: scope('punctuation.section.list.end') } },
          patterns: [self],
        },
        definition(DEFINERS.function, 'entity.name.function'),
        definition(DEFINERS.type, 'entity.name.type.class'),
        definition(DEFINERS.variable, 'entity.name.variable'),
        definition(DEFINERS.namespace, 'entity.name.namespace'),
        definition('def(?:ine)?-?[^\\s()"\';`,|\\\\#:]*', 'entity.name.other'),
        operator(anyOf(OPERATORS), 'keyword.control'),
        operator('with-[^\\s()"\';`,|\\\\#:]+|do-[^\\s()"\';`,|\\\\#:]+', 'keyword.control'),
        operator(anyOf(FUNCTIONS), 'support.function'),
        {
          begin: '\\(',
          beginCaptures: { 0: { name: scope('punctuation.section.list.begin') } },
          end: '\\)',
          endCaptures: { 0: { name: scope('punctuation.section.list.end') } },
          patterns: [self],
        },
      ],
    },
    atoms: {
      patterns: [
        {
          name: scope('constant.numeric'),
          match: `(?i)${BEGIN}[+-]?(?:\\d+/\\d+|\\d+\\.?|\\d*\\.\\d+(?:[esfdl][+-]?\\d+)?|\\d+(?:\\.\\d*)?[esfdl][+-]?\\d+)${END}`,
        },
        { name: scope('constant.language'), match: `(?i)${BEGIN}(?:nil|t|pi)${END}` },
        { name: scope('keyword.other.lambda-list'), match: `(?i)${BEGIN}&[a-z-]+${END}` },
        { name: scope('constant.other.keyword'), match: `${BEGIN}:(?:${NAME})` },
        { name: scope('variable.other.special'), match: `${BEGIN}\\*[^\\s()"'\`;,|\\\\:*][^\\s()"'\`;,|\\\\:]*\\*${END}` },
        { name: scope('variable.other.constant'), match: `${BEGIN}\\+[^\\s()"'\`;,|\\\\:+][^\\s()"'\`;,|\\\\:]*\\+${END}` },
        {
          match: `(${NAME})(::?)(${NAME})?`,
          captures: {
            1: { name: scope('entity.name.namespace') },
            2: { name: scope('punctuation.separator.namespace') },
            3: { name: scope('variable.other') },
          },
        },
        // A symbol's name between bars may go over several lines.
        { name: scope('variable.other.escaped'), begin: '\\|', end: '\\|', patterns: [ESCAPE] },
        { match: NAME },
      ],
    },
  },
}
