//go:build deps

package deps

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/apache/arrow-go/v18/parquet/pqarrow"
	_ "github.com/aws/aws-sdk-go-v2/config"
	_ "github.com/aws/aws-sdk-go-v2/credentials"
	_ "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	_ "github.com/aws/aws-sdk-go-v2/service/s3"
	_ "github.com/cespare/xxhash/v2"
	_ "github.com/expr-lang/expr"
	_ "github.com/golang/snappy"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/pierrec/lz4/v4"
	_ "github.com/spf13/cobra"
	_ "github.com/twmb/avro/ocf"
	_ "github.com/vbauerster/mpb/v8"
	_ "github.com/versity/versitygw/backend/posix"
	_ "github.com/versity/versitygw/s3api"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
)
