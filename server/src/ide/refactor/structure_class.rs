//! The conversion of a structure to a class: `defstruct` becomes `defclass`, with definitions of
//! the functions that `defstruct` made.

use super::class_form::{Class, insert_after, keyword_constructor, slot_name, unprefixed};
use super::site::{Edit, Site};
use super::verification::Accepted;
use super::{Group, Refactoring, elsewhere};
use crate::text::datum::{Node, Prefix};
use crate::text::definitions::{Structure, key};
use crate::text::names;

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let class = Class::at(site)?;
    let structure = class.structure.as_ref()?;
    let title = format!("Make {} a class", site.form.text(class.name));
    let result = slots(site, &class, structure).and_then(|slots| edits(site, &class, structure, &slots));
    let (edits, accepted) = match result {
        Ok((edits, functions)) => (Ok(edits), functions.into_iter().map(Accepted::StructureFunction).collect()),
        Err(why) => (Err(why), Vec::new()),
    };
    Some(Refactoring::new("structure-to-class", Group::Rewrite, title, edits).accepting(accepted))
}

/// A slot of the structure.
struct Slot<'a> {
    node: &'a Node,
    /// The name as written, without a package.
    name: &'a str,
    /// The initial value.
    initial: Option<&'a Node>,
    /// The pairs of options after the initial value.
    options: &'a [Node],
}

impl Slot<'_> {
    fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Reads the slots.
fn slots<'a>(site: &Site<'a>, class: &Class<'a>, structure: &Structure<'a>) -> Result<Vec<Slot<'a>>, String> {
    const READ: &str = "a slot is written in a way that is not understood here";
    let mut found = Vec::new();
    for node in structure.slots {
        let name = slot_name(node).filter(|name| name.is_plain()).ok_or(READ)?;
        let written = site.form.text(name);
        let guarded = node.children.iter().any(|child| child.guarded);
        if guarded || site.form.name(name).is_none() || written.contains(['|', '\\']) {
            return Err(READ.into());
        }
        let options = node.children.get(2..).unwrap_or_default();
        let known = |pair: &[Node]| matches!(site.form.name(&pair[0]).as_deref(), Some(":type" | ":read-only"));
        if options.len() % 2 != 0 || !options.chunks_exact(2).all(known) {
            return Err(format!("the slot {written} has options that are not a structure's"));
        }
        found.push(Slot { node, name: unprefixed(written), initial: node.children.get(1), options });
    }
    refuse_what_differs(site, class, structure)?;
    match found.iter().find(|slot| site.is_global(&slot.name.to_lowercase())) {
        Some(Slot { name, .. }) => {
            Err(format!("{name} is a special variable or a constant, and cannot be a parameter of the constructor"))
        }
        None => Ok(found),
    }
}

/// Refuses a structure that a class cannot replace, because it includes another or is included in
/// one, has other options, or is written as `#S(...)` in one of the texts at hand.
fn refuse_what_differs(site: &Site, class: &Class, structure: &Structure) -> Result<(), String> {
    for (option, arguments) in structure.named_options(site.form) {
        match option.as_str() {
            ":conc-name" | ":constructor" | ":predicate" | ":copier" => {}
            ":print-object" if arguments.len() < 2 => {}
            ":include" => {
                let included = arguments.first().map(|included| site.form.text(included)).unwrap_or_default();
                return Err(format!("it includes {included}, and a class has no structure as a superclass"));
            }
            _ => return Err(format!("a class has nothing like the option {option}")),
        }
    }
    let name = key(site.form.text(class.name));
    let includes = |one: &&crate::ide::index::Indexed| {
        one.operator == "defstruct" && one.supers.iter().any(|included| key(included) == name)
    };
    if let Some(other) = site.index.files.iter().flat_map(|file| &file.definitions).find(includes) {
        return Err(format!("the structure {} includes it", other.written));
    }
    let name = names::symbol(class.bare(site)).map(|symbol| symbol.name).unwrap_or_default();
    if elsewhere::texts(site)?.any(|document| has_literal(&document.text().to_string(), &name)) {
        return Err("a text has one as #S(...), which is a structure's syntax".into());
    }
    Ok(())
}

/// Returns the name of the structure at the cursor. Its uses as `#S(...)` in other texts decide
/// whether it can be converted.
pub(super) fn name_used_elsewhere(site: &Site) -> Option<String> {
    let class = Class::at(site)?;
    class.structure.as_ref()?;
    names::symbol(class.bare(site)).map(|symbol| symbol.name)
}

/// Returns true if a text has `#S(...)` with a symbol of this name, perhaps within a string, which
/// the program may read.
fn has_literal(text: &str, name: &str) -> bool {
    let starts = text.match_indices("#S").chain(text.match_indices("#s"));
    starts.filter_map(|(at, start)| text[at + start.len()..].trim_start().strip_prefix('(')).any(|inside| {
        let inside = inside.trim_start();
        let ends = |char: char| char.is_whitespace() || matches!(char, '(' | ')' | '"' | ';' | '\'' | ',' | '`');
        let written = inside.split(ends).next().unwrap_or_default();
        names::symbol(written).is_some_and(|symbol| symbol.name == name)
    })
}

/// Returns the edits, and the names of the functions that they define anew.
fn edits(
    site: &Site,
    class: &Class,
    structure: &Structure,
    slots: &[Slot],
) -> Result<(Vec<Edit>, Vec<String>), String> {
    let (list, n) = (class.list, site.newline);
    let (head, named) = (&list.children[0], &list.children[1]);
    let mut edits = vec![
        site.edit(head.end() - "defstruct".len(), head.end(), site.cased("defclass")),
        site.edit(named.start(), named.end(), format!("{} ()", site.form.text(class.name))),
    ];
    let prefix = structure.prefix(site.form).unwrap_or_default();
    if prefix.chars().any(char::is_lowercase) {
        return Err("the prefix of its accessors has lower-case letters".into());
    }
    let prefix = prefix.to_lowercase();
    let mut end = named.end();
    if let Some(documentation) = structure.documentation {
        edits.push(site.edit(end, documentation.end(), ""));
        end = documentation.end();
    }
    if slots.is_empty() {
        edits.push(site.edit(end, end, format!("{n}()")));
    }
    for (index, slot) in slots.iter().enumerate() {
        let open = if index == 0 { "(" } else { "" };
        let (start, between) = (slot.node.start(), site.between(end, slot.node.start()));
        match between {
            _ if between.contains('\n') => edits.push(site.edit(start, start, open)),
            _ if between.trim().is_empty() => edits.push(site.edit(end, start, format!("{n}{open}"))),
            // A comment is between the two.
            _ => edits.push(site.edit(start, start, format!("{n}{open}"))),
        }
        edits.extend(slot_edits(site, slot, &prefix));
        end = slot.node.end();
    }
    if let Some(last) = slots.last() {
        edits.push(site.edit(last.node.end(), last.node.end(), ")"));
    }
    if let Some(documentation) = structure.documentation {
        let option = format!("{n}({} {})", site.cased(":documentation"), site.form.text(documentation));
        edits.push(site.edit(list.end() - 1, list.end() - 1, option));
    }
    let functions = functions(site, class, structure, slots, &prefix)?;
    let accessors = slots.iter().map(|slot| format!("{prefix}{}", slot.name));
    let names = functions.iter().filter_map(|one| one.name.clone()).chain(accessors).collect();
    let functions = functions.iter().map(|one| insert_after(site, list, &one.code));
    Ok((site.with_whole_list_indented(list, edits).into_iter().chain(functions).collect(), names))
}

/// Returns the edits that change a slot, as from `(x 1 :type fixnum)` to
/// `(x :initarg :x :initform 1 :type fixnum :accessor point-x)`.
fn slot_edits(site: &Site, slot: &Slot, prefix: &str) -> Vec<Edit> {
    let read_only =
        slot.options.chunks_exact(2).position(|pair| site.form.name(&pair[0]).as_deref() == Some(":read-only"));
    let value = read_only.map(|at| site.form.text(&slot.options[2 * at + 1]));
    let reads = value.is_some_and(|value| !value.eq_ignore_ascii_case("nil"));
    let accessor = if reads { ":reader" } else { ":accessor" };
    let begin = site.cased(&format!(" :initarg :{} :initform", slot.name.to_lowercase()));
    let nil = site.cased(" nil");
    let end = site.cased(&format!(" {accessor} {prefix}{}", slot.name.to_lowercase()));
    let Some(last) = slot.node.children.last() else {
        let name = site.form.text(slot.node);
        return vec![site.edit(slot.node.start(), slot.node.end(), format!("({name}{begin}{nil}{end})"))];
    };
    let name_end = slot.node.children[0].end();
    let begin = if slot.initial.is_some() { begin } else { format!("{begin}{nil}") };
    let mut edits = vec![site.edit(name_end, name_end, begin)];
    if let Some(at) = read_only {
        let before = &slot.node.children[2 * at + 1];
        edits.push(site.edit(before.end(), slot.options[2 * at + 1].end(), ""));
    }
    edits.push(site.edit(last.end(), last.end(), end));
    edits
}

/// A definition that is added after the class.
struct AddedDefinition {
    /// The name, if the definition is of a function that `defstruct` made.
    name: Option<String>,
    code: String,
}

impl AddedDefinition {
    fn function(name: &str, code: String) -> AddedDefinition {
        AddedDefinition { name: Some(name.to_owned()), code }
    }
}

/// Returns the definitions of functions that `defstruct` made: the constructors, the printer, and
/// the predicate and copier if the workspace mentions them.
fn functions(
    site: &Site,
    class: &Class,
    structure: &Structure,
    slots: &[Slot],
    prefix: &str,
) -> Result<Vec<AddedDefinition>, String> {
    let (bare, n) = (class.bare(site), site.newline);
    let written = site.form.text(class.name);
    let mut code = Vec::new();
    let mut constructors = Vec::new();
    let mut asked = false;
    let (mut predicate, mut copier) = (Some(format!("{bare}-p")), Some(format!("copy-{bare}")));
    let mut printed = None;
    for (option, arguments) in structure.named_options(site.form) {
        let given = arguments.first().map(|given| site.form.text(given));
        let name = given.filter(|given| !given.eq_ignore_ascii_case("nil")).map(str::to_owned);
        match option.as_str() {
            ":constructor" => {
                asked |= given.is_some();
                if given.is_none() {
                    constructors.push((format!("make-{bare}"), None));
                }
                constructors.extend(name.map(|name| (name, arguments.get(1))));
            }
            ":predicate" if given.is_some() => predicate = name,
            ":copier" if given.is_some() => copier = name,
            ":print-object" => printed = name,
            _ => {}
        }
    }
    if !asked && constructors.is_empty() {
        constructors.push((format!("make-{bare}"), None));
    }
    for (name, parameters) in &constructors {
        let constructor = match parameters {
            Some(parameters) => positional_constructor(site, class, slots, name, parameters)?,
            None if slots.is_empty() => format!("(defun {name} (){n}(make-instance '{written}))"),
            None => {
                let keywords: Vec<&str> = slots.iter().map(|slot| slot.name).collect();
                keyword_constructor(site, class, name, &keywords.join(" "))
            }
        };
        code.push(AddedDefinition::function(name, constructor));
    }
    let used = |name: &String| site.index.mentioning(&name.to_lowercase()).next().is_some();
    let object = site.fresh("object", true);
    if let Some(name) = predicate.filter(used) {
        code.push(AddedDefinition::function(&name, format!("(defun {name} ({object}){n}(typep {object} '{written}))")));
    }
    if let Some(name) = copier.filter(used) {
        let parts: Vec<String> =
            slots.iter().map(|slot| format!("{n}:{0} ({prefix}{0} {object})", slot.name.to_lowercase())).collect();
        let copies = format!("(defun {name} ({object}){n}(make-instance '{written}{}))", parts.concat());
        code.push(AddedDefinition::function(&name, copies));
    }
    if let Some(function) = printed {
        let stream = site.fresh("stream", true);
        let prints = format!(
            "(defmethod print-object (({object} {written}) {stream}){n}(funcall #'{function} {object} {stream}))"
        );
        code.push(AddedDefinition { name: None, code: prints });
    }
    Ok(code)
}

/// Returns a constructor with a lambda list of its own (BOA lambda list, CLHS 3.4.6).
fn positional_constructor(
    site: &Site,
    class: &Class,
    slots: &[Slot],
    function: &str,
    list: &Node,
) -> Result<String, String> {
    let refused = |why: &str| Err(format!("the lambda list of {function} {why}"));
    if !list.is_list() {
        return refused("is not understood here");
    }
    let names: Vec<&str> = list
        .children
        .iter()
        .map(|node| site.form.text(if node.is_list() { node.children.first().unwrap_or(node) } else { node }))
        .collect();
    let (mut parameters, mut given) = (Vec::new(), Vec::new());
    let mut has_default = false;
    for (node, name) in list.children.iter().zip(&names) {
        let written = site.form.text(node);
        if name.starts_with('&') {
            match name.to_lowercase().as_str() {
                "&optional" | "&key" => has_default = true,
                "&rest" => has_default = false,
                "&allow-other-keys" => {}
                _ => return refused(&format!("has {name}, which is not understood here")),
            }
            parameters.push(written.to_owned());
            continue;
        }
        if !node.is_plain() || name.starts_with(['(', '|', '"']) || name.contains(':') {
            return refused("is not understood here");
        }
        let slot = slots.iter().find(|slot| slot.is_named(name));
        // The slot's own initial value is the default of its parameter.
        let initial = slot.and_then(|slot| slot.initial).filter(|_| has_default && node.children.len() < 2);
        match initial {
            Some(initial) => {
                let value = site.form.written(initial);
                let simple = !initial.is_list() && initial.prefix != Prefix::Backquote;
                if !simple || names.iter().any(|other| other.eq_ignore_ascii_case(value)) {
                    return refused(&format!("gives {name} the value {value}, which may mean something else there"));
                }
                parameters.push(format!("({name} {value})"));
            }
            None => parameters.push(written.to_owned()),
        }
        given.extend(slot.map(|slot| format!(" :{} {name}", slot.name.to_lowercase())));
    }
    let n = site.newline;
    let written = site.form.text(class.name);
    Ok(format!("(defun {function} ({}){n}(make-instance '{written}{}))", parameters.join(" "), given.concat()))
}
