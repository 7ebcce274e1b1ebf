package keygen

import (
	"fmt"
	"strings"
)

// Factory makes a generator of one's own from the options.
type Factory func(Options) (Generator, error)

// Registry holds generators of one's own by name. The name is what the option hoodie.datasource.write.keygenerator.class and
// the table property hoodie.table.keygenerator.class say, in most cases that of the Java class whose rule it follows. The zero
// value is empty and ready. It must not change while it is in use.
type Registry struct{ factories map[string]Factory }

// Register adds a generator. Names of Apache Hudi's own generators can't be taken.
func (r *Registry) Register(name string, f Factory) error {
	switch {
	case name == "" || f == nil:
		return fmt.Errorf("register a key generator: a name and a factory are needed")
	case classes[name] != "" || name == ExpressionClass:
		return fmt.Errorf("register key generator %s: the name is that of a built-in generator", name)
	case r.factories[name] != nil:
		return fmt.Errorf("register key generator %s: it is registered already", name)
	}
	if r.factories == nil {
		r.factories = map[string]Factory{}
	}
	r.factories[name] = f
	return nil
}

// Open chooses among expressions, registered generators and the built-in ones. This is what writers call.
func Open(o Options) (Generator, error) {
	if text := expressionText(o); text != "" {
		return NewExpression(text, o)
	}
	class := o.Properties[KeyClass]
	if stored := o.Table[TableClass]; stored != "" {
		if class != "" && class != stored && o.Registry != nil && o.Registry.factories[class] != nil {
			return nil, &Error{Class: classHoodie, Stage: StageConstruct, Row: -1, Field: KeyClass, Source: "the write options",
				Message: "Config conflict(key\tcurrent value\texisting value):\nKeyGenerator:\t" + class + "\t" + stored, Hint: "remove the option, the table's generator is used"}
		}
		class = stored
	}
	if class == "" && strings.EqualFold(o.Table[TableType], string(UserProvided)) {
		return nil, &Error{Class: classIO, Stage: StageConstruct, Row: -1, Field: KeyClass, Message: "the table's generator is one of its writer's own, and its properties don't name it",
			Source: fromTable, Hint: "name it with " + KeyClass}
	}
	if o.Registry != nil {
		if f := o.Registry.factories[class]; f != nil {
			return f(o)
		}
	}
	return New(o)
}
