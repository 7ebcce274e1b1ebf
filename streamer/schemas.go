package streamer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// The properties of schema providers.
const (
	keySourceSchema = "hoodie.streamer.schemaprovider.source.schema.file"
	keyTargetSchema = "hoodie.streamer.schemaprovider.target.schema.file"
	keyRegistry     = "hoodie.streamer.schemaprovider.registry.url"
	keyRegistryTo   = "hoodie.streamer.schemaprovider.registry.targetUrl"
)

// maxSchema bounds the text of a schema.
const maxSchema = 16 << 20

// schemas are what a schema provider gives: of the records in the source, and of the rows that are written. Nil: whatever comes.
type schemas struct{ source, target *schema.Type }

// provide asks the schema provider of a class (tools C.8). It is asked once, when the streamer starts, but for the schema of the
// table, which may change from round to round.
func provide(ctx context.Context, class string, props Properties, store storage.Store) (schemas, error) {
	var s schemas
	var err error
	switch name := shortClass(class, "org.apache.hudi.utilities.schema"); name {
	case "", "none", "inferred", "RowBasedSchemaProvider":
		return s, nil
	case "FilebasedSchemaProvider", "file":
		s, err = fileSchemas(ctx, props)
	case "NullTargetFilebasedSchemaProvider", "NullTargetSchemaFilebasedSchemaProvider", "file-null-target":
		s, err = fileSchemas(ctx, props)
		s.target = nil
	case "SchemaRegistryProvider", "registry":
		s, err = registrySchemas(ctx, props)
	case "NullTargetSchemaRegistryProvider", "registry-null-target":
		s, err = registrySchemas(ctx, props)
		s.target = nil
	case "TargetTableSchemaProvider", "table":
		s.source, err = tableSchema(ctx, store)
		s.target = s.source
	default:
		err = errors.New("Unable to load class: there are FilebasedSchemaProvider, SchemaRegistryProvider, their NullTarget forms, and table for the schema of the target table") //nolint:revive,staticcheck // begins with the original's text
	}
	if err != nil {
		return s, fmt.Errorf("%w: Could not load schema provider class %s: %w", ErrConfig, class, err)
	}
	return s, nil
}

// shortClass is the last part of a class of the original's package, and any other name as it is.
func shortClass(class, pkg string) string {
	name := strings.TrimSpace(class)
	for _, p := range []string{pkg, strings.Replace(pkg, "org.apache.hudi", "com.uber.hoodie", 1)} {
		if rest, ok := strings.CutPrefix(name, p+"."); ok {
			return rest
		}
	}
	return name
}

func fileSchemas(ctx context.Context, props Properties) (schemas, error) {
	file, ok := props.Get(keySourceSchema)
	if !ok || strings.TrimSpace(file) == "" {
		return schemas{}, fmt.Errorf("Required property %s is missing", keySourceSchema) //nolint:revive,staticcheck // the original's text
	}
	var s schemas
	var err error
	if s.source, err = schemaFile(ctx, strings.TrimSpace(file)); err != nil {
		return s, err
	}
	s.target = s.source
	if file := props.text(keyTargetSchema); file != "" {
		s.target, err = schemaFile(ctx, file)
	}
	return s, err
}

func schemaFile(ctx context.Context, url string) (*schema.Type, error) {
	text, err := readURL(ctx, url, maxSchema)
	if err != nil {
		return nil, fmt.Errorf("Error reading schema from file %s: %w", url, err) //nolint:revive,staticcheck // the original's text
	}
	return recordSchema(text, url)
}

func recordSchema(text []byte, from string) (*schema.Type, error) {
	t, err := schema.Parse(text)
	if err == nil && t.Kind != schema.Record {
		err = fmt.Errorf("a record was expected, not %s", t.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", from, err)
	}
	return t, nil
}

func registrySchemas(ctx context.Context, props Properties) (schemas, error) {
	at := props.text(keyRegistry)
	if at == "" {
		return schemas{}, fmt.Errorf("Required property %s is missing", keyRegistry) //nolint:revive,staticcheck // the original's text
	}
	var s schemas
	var err error
	if s.source, err = registered(ctx, at); err != nil {
		return s, err
	}
	s.target = s.source
	if to := props.text(keyRegistryTo); to != "" && to != "null" {
		s.target, err = registered(ctx, to)
	}
	return s, err
}

// registered asks a schema registry: {"schema": "<text>"}. A user in the URL is sent as basic authentication.
func registered(ctx context.Context, at string) (*schema.Type, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("the URL of the schema registry can't be read")
	}
	safe := *u
	safe.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, safe.String(), nil)
	if err != nil {
		return nil, err
	}
	if u.User != nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSchema))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("schema registry %s: %w", safe.String(), err)
	}
	var answer struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("schema registry %s: %w", safe.String(), err)
	}
	return recordSchema([]byte(answer.Schema), safe.String())
}

// tableSchema is the schema of the target table.
func tableSchema(ctx context.Context, store storage.Store) (*schema.Type, error) {
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return nil, fmt.Errorf("the schema of the target table is wanted: %w", err)
	}
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		return nil, err
	}
	t, _, err := timeline.TableSchema(ctx, store, cfg, tl, "")
	return t, err
}
