module devcluster/pause

go 1.26.0
