package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// File and Backup are the names of the properties below a table's base path.
const (
	File   = ".hoodie/hoodie.properties"
	Backup = ".hoodie/hoodie.properties.backup"
)

// While another process updates the file it is absent for a moment (table format 1.3): readers try again.
const (
	readAttempts = 5
	readPause    = 200 * time.Millisecond
)

// Load reads the properties of the table at the root of store. It never writes (C113): when the file is absent or spoilt it
// reads the backup, and tries a few times, as an update may be going on. It fails with ErrNotTable when there is no table,
// with ErrInvalid when no whole file is found, and with ErrUnsupported when the table must not be touched.
func Load(ctx context.Context, store storage.Store) (*Table, error) {
	var lastErr error
	for attempt := range readAttempts {
		if attempt > 0 {
			if err := pause(ctx, readPause); err != nil {
				return nil, err
			}
		}
		props, err := readEither(ctx, store)
		if err == nil {
			return Parse(props, store.URL())
		}
		if !errors.Is(err, storage.ErrNotExist) && !errors.Is(err, ErrInvalid) {
			return nil, err
		}
		lastErr = err
		if errors.Is(err, storage.ErrNotExist) && !hasMetaFolder(ctx, store) {
			return nil, &NotTableError{Path: storage.Join(store.URL(), metaFolder), Hint: "give the folder that holds .hoodie; is the path right, and may we list it?"}
		}
	}
	if errors.Is(lastErr, storage.ErrNotExist) {
		return nil, &NotTableError{Path: storage.Join(store.URL(), metaFolder), Hint: "there is a .hoodie folder, but neither hoodie.properties nor its backup in it"}
	}
	return nil, fmt.Errorf("%w (if a whole copy exists, put it in place of %s)", lastErr, storage.Join(store.URL(), File))
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func hasMetaFolder(ctx context.Context, store storage.Store) bool {
	for _, err := range store.List(ctx, metaFolder, storage.ListOptions{}) {
		return err == nil
	}
	return false
}

// readEither prefers the main file, then the backup. A main file without a checksum is taken only when no whole backup lies
// beside it: then an update was cut off while the main file was written.
func readEither(ctx context.Context, store storage.Store) (*Properties, error) {
	props, err := readFile(ctx, store, File)
	if err == nil && props.ValidChecksum() {
		return props, nil
	}
	saved, backupErr := readFile(ctx, store, Backup)
	switch {
	case backupErr == nil && (err != nil || saved.ValidChecksum()):
		return saved, nil //nolint:nilerr // the backup stands in for a main file that can't be read
	case err == nil:
		return props, nil //nolint:nilerr // without a backup the main file is all there is
	case errors.Is(err, storage.ErrNotExist) && backupErr != nil && !errors.Is(backupErr, storage.ErrNotExist):
		return nil, backupErr
	}
	return nil, err
}

// readFile reads one of the two files and tests what Java tests: the checksum, where there is one. A file without the required
// names was cut off.
func readFile(ctx context.Context, store storage.Store, name string) (*Properties, error) {
	text, err := readAll(ctx, store, name)
	if err != nil {
		return nil, err
	}
	props, err := ParseProperties(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, storage.Join(store.URL(), name), err)
	}
	if stored, ok := props.Get(TableChecksum); ok && !props.ValidChecksum() {
		return nil, fmt.Errorf("%w: %s: %s is %s, but database and table name give %d", ErrInvalid, storage.Join(store.URL(), name), TableChecksum, stored, props.Checksum())
	}
	for _, key := range []string{TableName, tableType} {
		if _, ok := props.Get(key); !ok {
			return nil, fmt.Errorf("%w: %s: %s is missing, the file may be cut off", ErrInvalid, storage.Join(store.URL(), name), key)
		}
	}
	return props, nil
}

func readAll(ctx context.Context, store storage.Store, name string) ([]byte, error) {
	return storage.ReadAll(ctx, store, name, MaxPropertiesSize)
}

// Changes are new values and keys to remove.
type Changes struct {
	Set    map[string]string
	Delete []string
}

// ErrBusy: another process is updating hoodie.properties.
var ErrBusy = errors.New("hoodie.properties is being updated by another process")

// Update changes hoodie.properties under the protocol of table format 1.3, so that a reader finds a whole file at every
// moment and a process that is killed leaves the old or the new content. Call it under the table lock where one is
// configured. Unknown keys stay.
func Update(ctx context.Context, store storage.Store, changes Changes) (*Table, error) {
	if err := Recover(ctx, store); err != nil {
		return nil, err
	}
	old, err := readAll(ctx, store, File)
	if err != nil {
		return nil, err
	}
	props, err := readFile(ctx, store, File)
	if err != nil {
		return nil, err
	}
	if _, err := Parse(props, store.URL()); err != nil {
		return nil, err // never rewrite a table that we may not touch
	}
	for _, key := range changes.Delete {
		props.Delete(key)
	}
	for _, key := range slices.Sorted(maps.Keys(changes.Set)) {
		props.Set(key, changes.Set[key])
	}
	table, err := Parse(props, store.URL())
	if err != nil {
		return nil, fmt.Errorf("refused update: %w", err)
	}
	if err := replace(ctx, store, old, props.Encode(time.Now())); err != nil {
		return nil, err
	}
	props.Set(TableChecksum, strconv.FormatUint(uint64(props.Checksum()), 10)) // as it was written
	return table, nil
}

// replace puts the new content between the making and the removing of a backup with the old one.
func replace(ctx context.Context, store storage.Store, old, text []byte) error {
	if _, err := store.Put(ctx, Backup, bytes.NewReader(old), storage.PutOptions{IfAbsent: true, Size: int64(len(old))}); err != nil {
		if errors.Is(err, storage.ErrExist) {
			return fmt.Errorf("%w: %s exists", ErrBusy, storage.Join(store.URL(), Backup))
		}
		return err
	}
	if err := put(ctx, store, File, text); err != nil {
		return err
	}
	written, err := readAll(ctx, store, File)
	if err != nil {
		return err
	}
	if !bytes.Equal(written, text) {
		return fmt.Errorf("%w: %s does not hold what was written; the backup was left beside it", ErrBusy, storage.Join(store.URL(), File))
	}
	return store.Delete(ctx, Backup)
}

// put replaces a file and, before that, removes the sidecar that Hadoop keeps on local disks: with a stale one Hadoop's readers
// report a checksum error (table format 11, trap 4).
func put(ctx context.Context, store storage.Store, name string, text []byte) error {
	if store.Traits().Dirs {
		if err := store.Delete(ctx, metaFolder+"/."+name[len(metaFolder)+1:]+".crc"); err != nil {
			return err
		}
	}
	_, err := store.Put(ctx, name, bytes.NewReader(text), storage.PutOptions{Size: int64(len(text))})
	return err
}

// Recover finishes an update that was cut off: it brings back the main file from the backup, or removes the backup when the
// main file is whole (table format 1.3, step 1).
func Recover(ctx context.Context, store storage.Store) error {
	saved, err := readAll(ctx, store, Backup)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if main, err := readFile(ctx, store, File); err == nil && main.ValidChecksum() {
		return store.Delete(ctx, Backup)
	} else if err != nil && !errors.Is(err, storage.ErrNotExist) && !errors.Is(err, ErrInvalid) {
		return err
	}
	if _, err := readFile(ctx, store, Backup); err != nil {
		return fmt.Errorf("neither hoodie.properties nor its backup is whole: %w", err)
	}
	if err := put(ctx, store, File, saved); err != nil {
		return err
	}
	return store.Delete(ctx, Backup)
}

// Create writes the first hoodie.properties of a new table, and fails with storage.ErrExist when one is there.
func Create(ctx context.Context, store storage.Store, props *Properties) (*Table, error) {
	table, err := Parse(props, store.URL())
	if err != nil {
		return nil, err
	}
	text := props.Encode(time.Now())
	if _, err := store.Put(ctx, File, bytes.NewReader(text), storage.PutOptions{IfAbsent: true, Size: int64(len(text))}); err != nil {
		return nil, err
	}
	props.Set(TableChecksum, strconv.FormatUint(uint64(props.Checksum()), 10)) // as it was written
	return table, nil
}
