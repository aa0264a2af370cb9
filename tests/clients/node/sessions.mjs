// A web server with express-session and connect-redis, for tests/clients/sessions.py: `sessions.mjs PORT` prints its own port,
// and counts the requests of a session until its input ends.

import { RedisStore } from 'connect-redis';
import express from 'express';
import session from 'express-session';
import { createClient } from 'redis';
import { version } from './check.mjs';

if (process.argv[2] === 'version') {
  console.log('connect-redis', version('connect-redis'));
} else {
  const client = createClient({ socket: { host: '127.0.0.1', port: Number(process.argv[2]), reconnectStrategy: 20 } });
  // Each request reports its own error.
  client.on('error', () => {});
  await client.connect();
  const app = express();
  app.use(session({ store: new RedisStore({ client }), secret: 'secret', resave: false, saveUninitialized: true }));
  app.get('/', (request, response) => {
    request.session.count = (request.session.count ?? 0) + 1;
    // The answer is sent when the session is stored.
    request.session.save((error) => (error ? response.sendStatus(503) : response.send(String(request.session.count))));
  });
  app.use((error, request, response, next) => response.sendStatus(503));
  const listening = app.listen(0, '127.0.0.1', () => console.log(listening.address().port));
  process.stdin.on('end', () => process.exit(0)).resume();
}
