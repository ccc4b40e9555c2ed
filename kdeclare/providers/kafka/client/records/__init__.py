"""Write records in transactions, and read committed records, with the clients of kafka-python."""
