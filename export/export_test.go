package export

import "github.com/sluicelake/sluice/hudi/filegroup"

// SetPack makes packs of inputs as small as that, so that small tables give several tasks.
func (c *Config) SetPack(bytes int64) { c.pack = bytes }

// Packs are the numbers of slices of some bytes in each pack.
func Packs(bytes []int64, most, workers int64) (out []int) {
	var slices []filegroup.Slice
	var total int64
	for _, n := range bytes {
		slices = append(slices, filegroup.Slice{Base: &filegroup.BaseFile{Size: n}})
		total += n + openCost
	}
	for _, p := range packed(slices, packSize(total, most, workers)) {
		out = append(out, len(p.Slices))
	}
	return out
}
