package doctor

import "golang.org/x/sys/unix"

func networkFileSystem(s *unix.Statfs_t) string {
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
		unix.CIFS_SUPER_MAGIC: "SMB", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS",
		unix.V9FS_MAGIC: "9P",
	}[int64(s.Type)]
}
