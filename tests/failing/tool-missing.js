const found = await demo.logs_qeury({ level: 'error' });
return found;
