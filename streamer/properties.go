package streamer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/transform"
)

// NoProps is the --props of the original that stands for none.
const NoProps = "file:///dummy/path/to/properties"

// sentinel recognises what people's scripts give for "no file": the original's default differs from release to release.
var sentinel = regexp.MustCompile(`(^|/)(src/test/resources/(delta-streamer-config|streamer-config)/dfs-source\.properties|dummy/path/to/properties)$`)

// maxProps bounds a properties file, in bytes.
const maxProps = 16 << 20

// Properties are hoodie.* options, as they were given.
type Properties map[string]string

// Get finds a property by its present name, then by those of earlier releases (tools C: "look up the new key first").
func (p Properties) Get(key string) (string, bool) {
	if v, ok := p[key]; ok {
		return v, true
	}
	if k, ok := config.Lookup(key); ok {
		for _, old := range k.Old {
			if v, ok := p[old]; ok {
				return v, true
			}
		}
	}
	return "", false
}

// text is Get for those to whom an absent property is an empty one.
func (p Properties) text(key string) string {
	v, _ := p.Get(key)
	return strings.TrimSpace(v)
}

func (p Properties) flag(key string) bool { return strings.EqualFold(p.text(key), "true") }

// family gives the properties below a prefix, by the rest of their names. A present prefix wins over an old one.
func (p Properties) family(present, old string) map[string]string {
	out := map[string]string{}
	for _, prefix := range []string{old, present} {
		for k, v := range p {
			if rest, ok := strings.CutPrefix(k, prefix); ok && rest != "" {
				out[rest] = v
			}
		}
	}
	return out
}

// LoadProperties joins what is configured, the lowest first: hudi-defaults.conf of the folder HUDI_CONF_DIR (/etc/hudi/conf), the
// file, and the pairs of --hoodie-conf in their order (tools C.2). It says in notes what a person should know.
func LoadProperties(ctx context.Context, file string, pairs []string) (props Properties, notes []string, err error) {
	props = Properties{}
	folder := os.Getenv("HUDI_CONF_DIR")
	if folder == "" {
		folder = "/etc/hudi/conf"
	}
	err = props.load(ctx, filepath.ToSlash(filepath.Join(folder, "hudi-defaults.conf")), nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if file != "" && !sentinel.MatchString(file) {
		if err := props.load(ctx, file, nil); err != nil {
			return nil, nil, fmt.Errorf("%w: Cannot read properties from dfs from file %s: %w", ErrConfig, file, err)
		}
	}
	for _, pair := range pairs {
		parts := splitPairs(pair)
		if len(parts) > 1 {
			key, _, _ := strings.Cut(pair, "=") // values may be secrets
			notes = append(notes, fmt.Sprintf("--hoodie-conf %s=…: taken as %d properties, as releases up to 0.5.3 do", key, len(parts)))
		}
		for _, part := range parts {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				notes = append(notes, fmt.Sprintf("--hoodie-conf %s: not key=value, ignored", part))
				continue
			}
			props[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return props, append(notes, props.unknown()...), nil
}

// nextPair is where a comma is followed by a property.
var nextPair = regexp.MustCompile(`,\s*hoodie\.[A-Za-z0-9_.]+=`)

// splitPairs parts a --hoodie-conf that joins several properties with commas, and leaves commas in values alone (#1586).
func splitPairs(text string) []string {
	var out []string
	begin := 0
	for _, at := range nextPair.FindAllStringIndex(text, -1) {
		if strings.Contains(text[begin:at[0]], "=") {
			out = append(out, text[begin:at[0]])
			begin = at[0] + 1
		}
	}
	return append(out, text[begin:])
}

// unknown names properties that are probably misspelt.
func (p Properties) unknown() []string {
	var notes []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if !strings.HasPrefix(k, "hoodie.") {
			continue
		}
		if near, ok := config.Nearest(k); ok {
			notes = append(notes, fmt.Sprintf("%s is not known; did you mean %s?", k, near))
		}
	}
	return notes
}

// load reads a file of the original's own syntax, which is not Java's: one entry a line, split at the first "=" or else at the
// first blank, runs of blanks are one, no escapes; include=<file> reads another at that point.
func (p Properties) load(ctx context.Context, url string, above []string) error {
	if slices.Contains(above, url) {
		return fmt.Errorf("Loop detected; file %s already referenced", url) //nolint:revive,staticcheck // the original's text
	}
	text, err := readURL(ctx, url, maxProps)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			if key, value, ok = strings.Cut(line, " "); !ok {
				continue
			}
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "include" {
			if err := p.load(ctx, besides(url, value), append(above, url)); err != nil {
				return fmt.Errorf("include=%s: %w", value, err)
			}
			continue
		}
		p[key] = value
	}
	return nil
}

// besides resolves a path against the folder of a file.
func besides(file, path string) string {
	if open.Scheme(path) != "" || strings.HasPrefix(path, "/") {
		return path
	}
	folder, _, err := open.Split(file)
	if err != nil {
		return path
	}
	return strings.TrimSuffix(folder, "/") + "/" + path
}

// openText opens the file of a SQL transformer, which may lie in any store.
func openText(ctx context.Context, url string) (io.ReadCloser, error) {
	text, err := readURL(ctx, url, transform.MaxSQLFile)
	return io.NopCloser(bytes.NewReader(text)), err
}

// readURL reads a small file.
func readURL(ctx context.Context, url string, most int64) ([]byte, error) {
	text, err := open.ReadFile(ctx, url, most)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, fmt.Errorf("File %s does not exist: %w", url, fs.ErrNotExist) //nolint:revive,staticcheck // the original's text
	}
	return text, err
}
