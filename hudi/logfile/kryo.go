package logfile

import (
	"fmt"
	"unicode/utf16"
)

// keysOfKryo decodes the content of a delete block of version 1: an array of HoodieKey as Kryo 4 writes it without registered
// classes and with references on, which is what releases before 0.13 did. Every length is checked against what is left.
//
// Layout, as found in files of 0.9.0: a class (1, a number, and its name at the first use), a reference mark (1: new), the
// array's length plus one, and for each key a class, a mark and the fields in order of their names: partition path, record
// key. A text is a mark and either ASCII whose last byte has its top bit set, or a length and modified UTF-8. A mark of n+2
// stands for the n-th object that was read.
func keysOfKryo(b []byte) ([]DeletedKey, error) {
	k := kryo{b: b, size: len(b)}
	if class := k.class(); k.err == nil && class != kryoKeys {
		return nil, &KryoDeletesError{Version: 1}
	}
	k.mark("the array")
	k.objects = append(k.objects, nil)
	n := int(k.varint()) - 1
	if k.err == nil && (n < 0 || n > len(k.b)) { // a key has more than one byte
		k.fail(fmt.Sprintf("%d keys in %d bytes", n, len(k.b)))
	}
	var out []DeletedKey
	for range max(n, 0) {
		if k.err != nil {
			break
		}
		out = append(out, k.key())
	}
	if k.err == nil && len(k.b) > 0 {
		k.fail(fmt.Sprintf("%d bytes behind the last key", len(k.b)))
	}
	return out, k.err
}

const (
	kryoKeys = "[Lorg.apache.hudi.common.model.HoodieKey;"
	kryoKey  = "org.apache.hudi.common.model.HoodieKey"
)

// kryo reads one serialized object graph. The first error stays.
type kryo struct {
	b       []byte
	size    int
	classes []string
	objects []any // *DeletedKey, string or nil, in the order in which they were read
	err     error
}

func (k *kryo) fail(what string) {
	if k.err == nil {
		k.err = fmt.Errorf("%w: serialized keys, byte %d: %s", ErrFormat, k.size-len(k.b), what)
	}
	k.b = nil
}

func (k *kryo) byte() byte {
	if len(k.b) == 0 {
		k.fail("cut off")
		return 0
	}
	c := k.b[0]
	k.b = k.b[1:]
	return c
}

// varint reads up to five bytes, least significant first.
func (k *kryo) varint() uint32 {
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		c := k.byte()
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	k.fail("a number of more than five bytes")
	return 0
}

// class reads a class that is written by name.
func (k *kryo) class() string {
	if k.varint() != 1 {
		k.fail("a class without a name")
		return ""
	}
	id := int(k.varint())
	switch {
	case id < len(k.classes):
		return k.classes[id]
	case id > len(k.classes):
		k.fail("an unknown class number")
		return ""
	}
	name := k.text()
	k.classes = append(k.classes, name)
	return name
}

// mark reads a reference mark that must announce a new object.
func (k *kryo) mark(what string) {
	if k.varint() != 1 {
		k.fail(what + " is no new object")
	}
}

// back gives the object that a mark other than 0 and 1 stands for.
func (k *kryo) back(mark uint32) any {
	if n := int(mark) - 2; n >= 0 && n < len(k.objects) {
		return k.objects[n]
	}
	k.fail("a reference to an object that was not read")
	return nil
}

func (k *kryo) key() DeletedKey {
	if class := k.class(); k.err == nil && class != kryoKey {
		k.fail("an object of class " + class)
	}
	if mark := k.varint(); mark != 1 {
		if key, ok := k.back(mark).(*DeletedKey); ok {
			return *key
		}
		k.fail("a key that is none")
		return DeletedKey{}
	}
	key := &DeletedKey{}
	k.objects = append(k.objects, key)
	key.Partition = k.sharedText()
	key.Key = k.sharedText()
	return *key
}

// sharedText reads a text field: null, new, or one that was read before.
func (k *kryo) sharedText() string {
	switch mark := k.varint(); mark {
	case 0:
		return ""
	case 1:
		text := k.text()
		k.objects = append(k.objects, text)
		return text
	default:
		text, ok := k.back(mark).(string)
		if !ok {
			k.fail("a text that is none")
		}
		return text
	}
}

func (k *kryo) text() string {
	first := k.byte()
	if first < 0x80 { // ASCII up to the byte with its top bit set
		out := []byte{first}
		for k.err == nil {
			c := k.byte()
			out = append(out, c&0x7f)
			if c >= 0x80 {
				break
			}
		}
		return string(out)
	}
	n := int(first & 0x3f)
	if first&0x40 != 0 {
		for shift := 6; ; shift += 7 {
			c := k.byte()
			n |= int(c&0x7f) << shift
			if c < 0x80 {
				break
			}
			if shift > 20 {
				k.fail("a length of more than four bytes")
				return ""
			}
		}
	}
	n-- // 0 is null, 1 is empty
	if n > len(k.b) {
		k.fail(fmt.Sprintf("a text of %d characters in %d bytes", n, len(k.b)))
		return ""
	}
	units := make([]uint16, 0, max(n, 0))
	for range max(n, 0) {
		units = append(units, k.unit())
	}
	return string(utf16.Decode(units))
}

// unit reads one UTF-16 unit of one to three bytes.
func (k *kryo) unit() uint16 {
	c := k.byte()
	switch c >> 4 {
	case 12, 13:
		return uint16(c&0x1f)<<6 | uint16(k.byte()&0x3f)
	case 14:
		hi := uint16(c&0x0f)<<12 | uint16(k.byte()&0x3f)<<6
		return hi | uint16(k.byte()&0x3f)
	}
	return uint16(c)
}
