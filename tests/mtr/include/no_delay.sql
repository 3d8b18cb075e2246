SET GLOBAL thread_pool_transaction_delay = 0;
