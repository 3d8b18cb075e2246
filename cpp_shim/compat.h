// SPDX-License-Identifier: GPL-2.0-only
//
// The server's headers, and whatever differs between server versions. Supported: MySQL 9.7.

#ifndef RTP_SHIM_COMPAT_H
#define RTP_SHIM_COMPAT_H

#include <mysql/components/my_service.h>
#include <mysql/components/services/dynamic_privilege.h>
#include <mysql/components/services/log_builtins.h>
#include <mysql/components/services/pfs_plugin_table_service.h>
#include <mysql/components/services/system_variable_source.h>
#include <mysql/plugin.h>
#include <mysql/psi/mysql_socket.h>
#include <mysql/psi/mysql_thread.h>
#include <mysql/service_thread_scheduler.h>
#include <mysql/thread_pool_priv.h>
#include <mysql_version.h>
#include <mysqld_error.h>

#include "my_sys.h"
#include "my_systime.h"
#include "my_thread.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/mdl.h"
#include "sql/mysqld.h"
#include "sql/protocol_classic.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_lex.h"
#include "sql/sql_thd_internal_api.h"
#include "sql/transaction_info.h"
#include "sql/xa.h"
#include "string_with_len.h"

#if MYSQL_VERSION_ID < 90700 || MYSQL_VERSION_ID >= 90800
#error "thread_pool_rs is written for MySQL 9.7"
#endif

// Where the performance schema keeps the instrumentation of the running thread
// (storage/perfschema/pfs.h, which itself can't be included outside of the server's build).
struct PFS_thread;
extern thread_local PFS_thread *THR_PFS;

// The pool passes what the performance schema knows about a thread around as a pointer that is
// null when the performance schema is off or full.
namespace rtp {

inline PSI_thread *psi_current() { return PSI_THREAD_CALL(get_thread)(); }

// What the server's set_thread does, except that it also gives the operating system's thread the
// name of the instrumentation: one system call for each change of session, of which a statement
// needs four. So a worker keeps its own name for the operating system.
inline void psi_make_current(PSI_thread *psi) { THR_PFS = reinterpret_cast<PFS_thread *>(psi); }

}  // namespace rtp

#endif  // RTP_SHIM_COMPAT_H
