package basefile

// Buffered is about how many bytes the writer holds: the open row group.
func (w *Writer) Buffered() int64 { return w.groupBytes }

// EndRowGroup closes the open row group before it has its wanted size, for a caller who needs the memory.
func (w *Writer) EndRowGroup() error {
	if w.err != nil {
		return w.err
	}
	if err := w.endGroup(); err != nil {
		return w.fail(err)
	}
	return nil
}
