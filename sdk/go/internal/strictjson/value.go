package strictjson

// Kind says which of the six JSON types a value has.
type Kind uint8

// The types of JSON. The zero Kind is null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is one JSON value, with the bytes that it was read from.
type Value struct {
	// Kind is the value's type.
	Kind Kind
	// Raw are the bytes as received, without the space around them. They share memory with what Parse was given.
	Raw []byte
	// Text is a string with its escapes resolved; "" for every other type.
	Text string
	// Items are the values of an array in their order.
	Items []Value
	// Members are the members of an object in the order they were sent. No name is there twice.
	Members []Member
}

// Member is one name of an object and what stands under it.
type Member struct {
	Name  string
	Value Value
}

// Get returns what stands under a name. It is nil where v is nil, is no object, or has no such member or null under it:
// null counts as absent.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return present(&v.Members[i].Value)
		}
	}
	return nil
}

// IsObject reports whether v is there and an object.
func (v *Value) IsObject() bool { return v != nil && v.Kind == Object }

// IsString reports whether v is there and a string.
func (v *Value) IsString() bool { return v != nil && v.Kind == String }

func present(v *Value) *Value {
	if v.Kind == Null {
		return nil
	}
	return v
}
