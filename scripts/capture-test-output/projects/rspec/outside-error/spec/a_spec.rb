raise 'no database'
