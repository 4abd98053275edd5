//! The parameters of a function that is inlined, and the bindings that replace the arguments of a
//! call.

use super::site::Site;
use crate::text::datum::{Kind, Node};

/// The parameters of an ordinary lambda list.
pub(super) struct LambdaList<'a> {
    parameters: Vec<Parameter<'a>>,
}

struct Parameter<'a> {
    class: Class,
    name: &'a Node,
    default: Option<&'a Node>,
    supplied: Option<&'a Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Class {
    Required,
    Optional,
    Rest,
    /// The keyword, as [`crate::text::datum::Form::name`] returns it.
    Key(String),
    Aux,
}

/// A variable and its value, for the code that replaces a call.
pub(super) struct ArgumentBinding<'a> {
    /// The name in the lambda list.
    pub(super) name: &'a Node,
    pub(super) value: Value<'a>,
}

/// The value of a parameter in a call.
pub(super) enum Value<'a> {
    /// An argument of the call.
    Argument(&'a Node),
    /// The list of the remaining arguments.
    Rest(&'a [Node]),
    /// The default value from the lambda list; `None` for NIL.
    Default(Option<&'a Node>),
    /// The value of a supplied-p variable.
    Supplied(bool),
}

/// The bindings that replace a call.
pub(super) struct Bindings<'a> {
    /// The arguments in the order of the call. The parameters are not visible in their values.
    pub(super) arguments: Vec<ArgumentBinding<'a>>,
    /// The parameters without an argument in the order of the lambda list. In each default, the
    /// parameters before it are visible.
    pub(super) defaults: Vec<ArgumentBinding<'a>>,
}

impl<'a> Bindings<'a> {
    /// Returns the default values that are evaluated.
    pub(super) fn default_values(&self) -> impl Iterator<Item = &'a Node> + '_ {
        self.defaults.iter().filter_map(|bound| match bound.value {
            Value::Default(value) => value,
            _ => None,
        })
    }
}

impl<'a> LambdaList<'a> {
    /// Reads the parameters of a lambda list.
    ///
    /// # Errors
    /// The reason why calls of a function with this lambda list cannot be inlined.
    pub(super) fn of(site: &Site<'a>, list: &'a Node) -> Result<LambdaList<'a>, String> {
        if has_guarded(list) {
            return Err("a part of it is read only with some features (#+, #-)".into());
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut class = Class::Required;
        for node in list.elements() {
            let marker = site.form.name(node).filter(|name| name.starts_with('&'));
            match marker.as_deref() {
                Some("&optional") => class = Class::Optional,
                Some("&rest") => class = Class::Rest,
                Some("&key") => class = Class::Key(String::new()),
                Some("&allow-other-keys") => {}
                Some("&aux") => class = Class::Aux,
                Some(name) => return Err(format!("its lambda list has {name}")),
                None => parameters.push(parameter(site, node, &class)?),
            }
        }
        let has = |class: fn(&Class) -> bool| parameters.iter().any(|one| class(&one.class));
        if has(|class| *class == Class::Rest) && has(|class| matches!(class, Class::Key(_))) {
            return Err("its lambda list has &rest and &key, which share arguments".into());
        }
        for name in parameters.iter().flat_map(Parameter::variables) {
            let name = site.form.name(name).unwrap_or_default();
            if site.is_global(&name) {
                return Err(format!("its parameter {name} may be a special variable"));
            }
        }
        Ok(LambdaList { parameters })
    }

    fn count(&self, class: &Class) -> usize {
        self.parameters.iter().filter(|one| one.class == *class).count()
    }

    /// Returns the bindings that replace a call with these arguments. `own` is the site of the
    /// function, and `site` is that of the call.
    ///
    /// # Errors
    /// The reason why the values of the parameters are not known.
    pub(super) fn bindings(&self, own: &Site, site: &Site, arguments: &'a [Node]) -> Result<Bindings<'a>, String> {
        if arguments.iter().any(|argument| argument.guarded) {
            return Err("an argument is read only with some features (#+, #-)".into());
        }
        let positional = self.count(&Class::Required) + self.count(&Class::Optional);
        self.check_count(positional, arguments.len())?;
        let (given, more) = arguments.split_at(positional.min(arguments.len()));
        let keys = if self.has_keys() { self.keys(site, more)? } else { Vec::new() };
        let (mut order, mut defaults) = (Vec::new(), Vec::new());
        let mut given = given.iter();
        for (index, parameter) in self.parameters.iter().enumerate() {
            let value = match &parameter.class {
                Class::Required | Class::Optional => given.next().map(Value::Argument),
                Class::Rest => Some(Value::Rest(more)),
                Class::Key(keyword) => {
                    let given = keys.iter().find(|(name, _)| name == keyword);
                    given.map(|(_, argument)| Value::Argument(argument))
                }
                Class::Aux => None,
            };
            let supplied = parameter.supplied.filter(|name| is_used(own, name));
            let flag = |given| supplied.map(|name| ArgumentBinding { name, value: Value::Supplied(given) });
            match value {
                Some(value) => {
                    let at = match &value {
                        Value::Argument(argument) => argument.start(),
                        _ => usize::MAX,
                    };
                    order.push((at, [Some(ArgumentBinding { name: parameter.name, value }), flag(true)]));
                }
                None => {
                    if let Some(default) = parameter.default {
                        self.check_default(own, index, default)?;
                    }
                    defaults.push(ArgumentBinding { name: parameter.name, value: Value::Default(parameter.default) });
                    defaults.extend(flag(false));
                }
            }
        }
        order.sort_by_key(|(at, _)| *at);
        let arguments = order.into_iter().flat_map(|(_, bound)| bound).flatten().collect();
        Ok(Bindings { arguments, defaults })
    }

    fn has_keys(&self) -> bool {
        self.parameters.iter().any(|one| matches!(one.class, Class::Key(_)))
    }

    fn check_count(&self, positional: usize, given: usize) -> Result<(), String> {
        let required = self.count(&Class::Required);
        let open = self.has_keys() || self.count(&Class::Rest) > 0;
        if required <= given && (open || given <= positional) {
            return Ok(());
        }
        let takes = match (open, required == positional) {
            (true, _) => format!("at least {required}"),
            (false, true) => format!("{required}"),
            (false, false) => format!("{required} to {positional}"),
        };
        Err(format!("it takes {takes} arguments, and the call has {given}"))
    }

    /// Returns the keywords of a call with their values.
    fn keys(&self, site: &Site, arguments: &'a [Node]) -> Result<Vec<(String, &'a Node)>, String> {
        let mut found: Vec<(String, &Node)> = Vec::new();
        for pair in arguments.chunks(2) {
            let written = crate::ide::clip::clip(site.form.written(&pair[0]), 60).text;
            let keyword = site.form.name(&pair[0]).filter(|name| pair[0].is_plain() && name.starts_with(':'));
            let Some(keyword) = keyword else { return Err(format!("{written} is no keyword that the text tells")) };
            let [_, value] = pair else { return Err(format!("{written} has no value in the call")) };
            let known = |one: &Parameter| matches!(&one.class, Class::Key(name) if *name == keyword);
            if !self.parameters.iter().any(known) {
                return Err(format!("it has no parameter for {written}"));
            }
            if found.iter().any(|(name, _)| *name == keyword) {
                return Err(format!("the call has {written} twice"));
            }
            found.push((keyword, value));
        }
        Ok(found)
    }

    /// Refuses a default value that contains the name of a variable that is bound after it. In the
    /// code that replaces the call, that variable may be bound before the default value is
    /// evaluated.
    fn check_default(&self, own: &Site, index: usize, default: &Node) -> Result<(), String> {
        let later = self.parameters[index + 1..].iter().flat_map(Parameter::variables);
        for variable in self.parameters[index].supplied.into_iter().chain(later) {
            let name = own.form.name(variable).unwrap_or_default();
            if mentions(own, default, &name) {
                return Err(format!("a default value has the name of {name}, which is bound after it"));
            }
        }
        Ok(())
    }

    /// Returns true if a form contains the name of a parameter.
    pub(super) fn is_named_in(&self, own: &Site, node: &Node) -> bool {
        let names = self.parameters.iter().flat_map(Parameter::variables).filter_map(|name| own.form.name(name));
        names.into_iter().any(|name| mentions(own, node, &name))
    }
}

impl<'a> Parameter<'a> {
    fn variables(&self) -> impl Iterator<Item = &'a Node> + use<'a> {
        [Some(self.name), self.supplied].into_iter().flatten()
    }
}

fn parameter<'a>(site: &Site<'a>, node: &'a Node, class: &Class) -> Result<Parameter<'a>, String> {
    let no_name = || "a parameter of it is no name".to_owned();
    let may_be_list = !matches!(class, Class::Required | Class::Rest);
    let (head, default, supplied) = match node.elements() {
        _ if node.is_plain() && node.kind == Kind::Atom => (node, None, None),
        [head, rest @ ..] if may_be_list && node.is_list() && rest.len() < 3 => (head, rest.first(), rest.get(1)),
        _ => return Err(no_name()),
    };
    let (name, key) = match (class, head.elements()) {
        (Class::Key(_), [key, name]) if head.is_list() => {
            let keyword = site.form.name(key).filter(|key| key.starts_with(':'));
            (name, Some(keyword.ok_or("a key of it is no keyword")?))
        }
        _ => (head, None),
    };
    let is_name = |node: &Node| node.is_plain() && site.form.name(node).is_some();
    if !is_name(name) || supplied.is_some_and(|name| !is_name(name)) {
        return Err(no_name());
    }
    let class = match class {
        Class::Key(_) => {
            let own = || format!(":{}", site.form.name(name).unwrap_or_default());
            Class::Key(key.unwrap_or_else(own))
        }
        other => other.clone(),
    };
    Ok(Parameter { class, name, default, supplied })
}

fn has_guarded(node: &Node) -> bool {
    node.children.iter().any(|child| child.guarded || has_guarded(child))
}

/// Returns true if a variable occurs in another place than its binding.
fn is_used(own: &Site, name: &Node) -> bool {
    own.scopes.resolve(name.span.start).is_none_or(|index| own.scopes.occurrences(index).len() > 1)
}

/// Returns true if code contains this name outside of quoted data.
pub(super) fn mentions(site: &Site, node: &Node, name: &str) -> bool {
    !node.is_data()
        && (site.form.name(node).as_deref() == Some(name) || node.children.iter().any(|one| mentions(site, one, name)))
}
