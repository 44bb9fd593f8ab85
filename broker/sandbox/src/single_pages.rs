//! Makes the kernel map the pages of an image one at a time, each when a guest first reads it.
//!
//! By default the kernel maps sixteen neighbouring pages at once. A guest reads a few scattered
//! pages, so the kernel would map five times as many pages as the guest needs. At the guest's end
//! each mapped page is checked for writes, which took a quarter of a short run.
//!
//! The kernel has no setting for this. But it maps no neighbours in a range that is registered for
//! notifications of writes. So this module registers the range. It never marks a page, so the
//! kernel never sends a notification. If the kernel refuses the registration, it maps neighbours as
//! usual.

use std::fmt;

#[cfg(target_os = "linux")]
pub(super) use linux::SinglePages;

impl fmt::Debug for SinglePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinglePages").finish_non_exhaustive()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::os::fd::OwnedFd;
    use std::sync::{Mutex, PoisonError};

    use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
    use rustix::mm::{UserfaultfdFlags, userfaultfd};

    /// The kernel's number of this interface, and the group of its ioctls.
    const INTERFACE: u8 = 0xaa;
    const AGREE: Opcode = opcode::read_write::<Agree>(INTERFACE, 0x3f);
    const REGISTER: Opcode = opcode::read_write::<Register>(INTERFACE, 0);
    /// Excludes the kernel's own writes from notifications. A process may then register without a
    /// privilege.
    const USER_MODE_ONLY: u32 = 1;
    /// Requests notifications of writes to marked pages.
    const OF_WRITES: u64 = 2;

    #[repr(C)]
    struct Agree {
        interface: u64,
        features: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Register {
        begin: u64,
        bytes: u64,
        mode: u64,
        ioctls: u64,
    }

    /// The registration for the memories of one engine.
    pub(crate) struct SinglePages {
        asked: Option<OwnedFd>,
        /// The addresses of registered memories that stay mapped between two guests.
        kept: Mutex<BTreeSet<usize>>,
    }

    impl SinglePages {
        pub(crate) fn ask() -> Self {
            Self {
                asked: agreed().ok(),
                kept: Mutex::default(),
            }
        }

        /// Registers the memory of a guest before it runs: its address, its size in bytes, and
        /// whether it stays mapped when the guest ends.
        pub(crate) fn of(&self, memory: *const u8, bytes: usize, is_kept: bool) {
            let Some(asked) = &self.asked else {
                return;
            };
            let begin = memory.addr();
            if is_kept {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                if !kept.insert(begin) {
                    return;
                }
            }
            // If the kernel refuses, neighbours are mapped too.
            let _ = register(asked, begin, bytes);
        }
    }

    fn agreed() -> rustix::io::Result<OwnedFd> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        let mut agree = Agree {
            interface: INTERFACE.into(),
            features: 0,
            ioctls: 0,
        };
        // SAFETY: the descriptor stays in this module, which uses it only to register ranges. The
        // ioctl takes a structure of this layout.
        #[expect(unsafe_code, reason = "the interface has no safe form")]
        unsafe {
            let asked = userfaultfd(flags)?;
            ioctl(&asked, Updater::<AGREE, Agree>::new(&mut agree))?;
            Ok(asked)
        }
    }

    fn register(asked: &OwnedFd, begin: usize, bytes: usize) -> rustix::io::Result<()> {
        let mut register = Register {
            begin: begin as u64,
            bytes: bytes as u64,
            mode: OF_WRITES,
            ioctls: 0,
        };
        // SAFETY: the ioctl takes a structure of this layout. Mapped data in the range does not
        // change. No page is ever marked, so no thread waits for a notification.
        #[expect(unsafe_code, reason = "the interface has no safe form")]
        unsafe {
            ioctl(asked, Updater::<REGISTER, Register>::new(&mut register))
        }
    }

    #[cfg(test)]
    mod tests {
        use std::fs::File;
        use std::os::unix::fs::FileExt;
        use std::ptr;

        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

        use super::*;

        const PAGES: usize = 64;

        fn page_bytes() -> usize {
            let told = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let line = told
                .lines()
                .find_map(|line| line.strip_prefix("KernelPageSize:"));
            let kib = line.unwrap().split_whitespace().next().unwrap();
            kib.parse::<usize>().unwrap() * 1024
        }

        /// Returns which pages of a memory are mapped, as the kernel reports it.
        fn there(begin: *const u8, page_bytes: usize) -> Vec<usize> {
            let told = File::open("/proc/self/pagemap").unwrap();
            let first = begin.addr() / page_bytes;
            let is_there = |page: &usize| {
                let mut word = [0; 8];
                let at = (first + page) * word.len();
                told.read_exact_at(&mut word, at as u64).unwrap();
                // The two upper bits mark a page as present or swapped out. The kernel also marks a
                // page as swapped out while it moves the page.
                u64::from_ne_bytes(word) >> 62 != 0
            };
            (0..PAGES).filter(is_there).collect()
        }

        #[test]
        fn page_read_is_mapped_alone_and_written_page_stays() {
            let page_bytes = page_bytes();
            let bytes = PAGES * page_bytes;
            let image = memfd_create("image", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&image, bytes as u64).unwrap();
            let image = File::from(image);
            image.write_all_at(&vec![7; bytes], 0).unwrap();
            let pages = SinglePages::ask();
            for is_kept in [true, false] {
                let protection = ProtFlags::READ | ProtFlags::WRITE;
                #[expect(unsafe_code, reason = "maps memory as the sandbox does")]
                let begin = unsafe {
                    let place = ptr::null_mut();
                    mmap(place, bytes, protection, MapFlags::PRIVATE, &image, 0).unwrap()
                };
                let begin = begin.cast::<u8>();
                pages.of(begin, bytes, is_kept);
                // A second registration is harmless, and shows whether this kernel supports it for
                // such a memory.
                let again = |asked: &OwnedFd| register(asked, begin.addr(), bytes).is_ok();
                let comes_alone = pages.asked.as_ref().is_some_and(again);
                #[expect(unsafe_code, reason = "only this test uses the memory")]
                unsafe {
                    assert_eq!(begin.add(20 * page_bytes).read_volatile(), 7);
                    begin.add(40 * page_bytes).write_volatile(8);
                    let found = there(begin, page_bytes);
                    if comes_alone {
                        assert_eq!(found, [20, 40]);
                    } else {
                        assert!(found.contains(&20) && found.contains(&40));
                    }
                    assert_eq!(begin.add(40 * page_bytes).read_volatile(), 8);
                    munmap(begin.cast(), bytes).unwrap();
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) struct SinglePages;

#[cfg(not(target_os = "linux"))]
impl SinglePages {
    pub(super) fn ask() -> Self {
        Self
    }

    pub(super) fn of(&self, _memory: *const u8, _bytes: usize, _is_kept: bool) {}
}
