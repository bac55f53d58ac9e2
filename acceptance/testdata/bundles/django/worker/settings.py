import os

SECRET_KEY = os.environ['SECRET_KEY']
ALLOWED_HOSTS = ['localhost', '127.0.0.1']
ROOT_URLCONF = 'worker.urls'
MIDDLEWARE = ['django.middleware.security.SecurityMiddleware', 'django.middleware.csrf.CsrfViewMiddleware']
INSTALLED_APPS = ['django.contrib.contenttypes']
DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'worker.sqlite3'}}
DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'
