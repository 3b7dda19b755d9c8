-- pgAudit has no objects that a project calls: it writes to the server's log, which is not done here.
select;
