package basefile

// Footer gives the bytes of a Parquet file's footer: a Thrift compact FileMetaData whose lengths, row groups and column chunks
// were checked when the file was opened. There is none for files of other formats. Do not change them.
func Footer(f File) (text []byte, ok bool) {
	p, ok := f.(*parquetFile)
	if !ok {
		return nil, false
	}
	end := len(p.tail.data) - 8
	n := int(uint32(p.tail.data[end]) | uint32(p.tail.data[end+1])<<8 | uint32(p.tail.data[end+2])<<16 | uint32(p.tail.data[end+3])<<24)
	return p.tail.data[end-n : end : end], true
}
